# From the database and the figures to the report: HTML pages, and tables for Snakemake's own report.
rule report:
    input:
        rules.load.output.summary,
        figures=plan.drawings,
    output:
        "results/report/index.html",
        [
            report(f"results/report/{name}.csv", caption=f"../report/{name}.rst", category="Tables", labels={"table": name})
            for name in ("metrics", "replicates", "reproduction")
        ],
    params:
        settings=digest(plan.plans["settings"]),
        code=fingerprint("report"),
    log:
        "results/log/report.log",
    benchmark:
        "results/benchmark/report.tsv"
    resources:
        mem_mb=plan.memory(700, 0.4),
        runtime=plan.minutes(5, 0.01),
    message:
        "report {output[0]}"
    shell:
        "swflow report {input.figures} --no-draw --studies results/settings.json "
        "--database results/swflow.duckdb -o results/report 2>&1 | tee {log}"
