# From the database and the figures to the report: HTML pages, and tables for Snakemake's own report. The job also removes
# figures and tables of former configs, and copies the config with its defaults.
rule report:
    input:
        figures=partial(drawings, plan),
        database=rules.load.output.database,
        changes=rules.load.output.changes,
        settings=plan.settings,
        keep=KEPT,
    output:
        [f"results/report/{name}" for name in ("index.html", "tables.html", "changes.html", "headlines.csv")],
        [
            report(
                f"results/report/{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"table": name},
            )
            for name in ("metrics", "replicates", "reproduction")
        ],
        folders=[directory(f"results/report/{name}") for name in ("studies", "logs", "papers", "assets")],
        settings="results/settings.json",
    log:
        "results/log/report.log",
    benchmark:
        "results/benchmark/report.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 700, 0.4),
        runtime=minutes(plan.catalogue, 5, 0.01),
    params:
        code=fingerprint("report"),
    message:
        "report {output[0]}"
    shell:
        "cp {input.settings} {output.settings} && mkdir -p {output.folders} && "
        "swflow report {input.figures} --no-draw --studies {input.settings} --prune {input.keep} "
        "--changes {input.changes} --database {input.database} -o results/report 2>&1 | tee {log}"


# On request: remove the runs, workloads and logs of former configs, and what stores keep of them.
rule prune:
    input:
        KEPT,
    log:
        "results/log/prune.log",
    localrule: True
    conda:
        ENVIRONMENT
    message:
        "prune results"
    shell:
        "swflow prune {input} 2>&1 | tee {log}"
