# From runs to the database. The declared outputs are a summary, and the verdicts that figures show: Snakemake deletes an
# output before its job, but readers of the database, and a load that updates it, need the old file until the new one
# replaces it. The rule is a checkpoint, so that Snakemake decides after the load which figures to draw.
checkpoint load:
    input:
        plan.loaded,
    output:
        summary="results/swflow.json",
        verdicts=directory("results/verdicts"),
    params:
        plan=digest(plan.plans["load"]),
        code=fingerprint("load"),
    log:
        "results/log/load.log",
    benchmark:
        "results/benchmark/load.tsv"
    threads: 4
    resources:
        mem_mb=plan.memory(2400, 4),
        runtime=plan.minutes(5, 0.01),
    message:
        "load results/swflow.duckdb"
    shell:
        "swflow load --plan results/load.json --database results/swflow.duckdb --summary {output.summary} "
        "--verdicts {output.verdicts} --processes {threads} 2>&1 | tee {log}"
