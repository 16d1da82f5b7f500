# From runs to the database. Snakemake deletes an output before its job, but a load only updates the database, and
# readers need the old one meanwhile. The command therefore keeps it under a second name, results/.swflow.duckdb, and
# restores it first. After a load that failed, the database is missing until a call succeeds, and the earlier one is
# still there under its second name. The rule is a checkpoint, so that Snakemake decides after the load which figures to
# draw from the verdicts.
checkpoint load:
    input:
        plan.loaded,
        plan=plan.to_load,
    output:
        database="results/swflow.duckdb",
        summary="results/swflow.json",
        changes="results/changes.json",
        verdicts=directory("results/verdicts"),
    log:
        "results/log/load.log",
    benchmark:
        "results/benchmark/load.tsv"
    conda:
        ENVIRONMENT
    threads: 4
    resources:
        mem_mb=memory(plan.catalogue, 2400, 4),
        runtime=minutes(plan.catalogue, 5, 0.01),
    params:
        code=fingerprint("load"),
    message:
        "load {output.database}"
    shell:
        "swflow load --plan {input.plan} --database {output.database} --earlier results/.swflow.duckdb "
        "--summary {output.summary} --changes {output.changes} --verdicts {output.verdicts} --processes {threads} 2>&1 | tee {log}"
