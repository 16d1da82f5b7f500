# From the database and the figures to the report: HTML pages, and tables for Snakemake's own report.
rule report:
    input:
        rules.load.output.summary,
        figures=plan.drawings,
    output:
        "results/report/index.html",
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
        "report {output}"
    shell:
        "swflow report {input.figures} --no-draw --studies results/settings.json "
        "--database results/swflow.duckdb -o results/report 2>&1 | tee {log}"


rule tables:
    input:
        rules.load.output.summary,
    output:
        **{
            name: report(
                f"results/tables/{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"table": name},
            )
            for name in ("metrics", "reproduction", "replicates")
        },
    params:
        code=fingerprint("sql"),
    log:
        "results/log/tables.log",
    benchmark:
        "results/benchmark/tables.tsv"
    resources:
        mem_mb=plan.memory(500, 0.1),
        runtime=plan.minutes(2, 0.005),
    message:
        "tables of Snakemake's report"
    shell:
        "(swflow sql 'FROM metrics ORDER BY workload, scheduler' {output.metrics} --csv && "
        "swflow sql 'FROM reproduction' {output.reproduction} --csv && "
        "swflow sql 'FROM replicates ORDER BY ALL' {output.replicates} --csv) 2>&1 | tee {log}"
