# From runs to the database. The declared output is a summary: Snakemake deletes an output before its job, but readers
# of the database need the old file until the new one replaces it.
rule load:
    input:
        runs=plan.loaded_files,
        workloads=plan.loaded_workloads,
    output:
        "results/swflow.json",
    params:
        left_out=plan.left_out_options,
        code=fingerprint("load"),
    log:
        "results/log/load.log",
    benchmark:
        "results/benchmark/load.tsv"
    threads: 4
    resources:
        mem_mb=plan.memory(2400, 4, runs_mb),
        runtime=plan.minutes(5, 0.01, runs_mb),
    message:
        "load results/swflow.duckdb"
    shell:
        "swflow load {input.runs} --database results/swflow.duckdb --summary {output} {params.left_out} "
        "--processes {threads} 2>&1 | tee {log}"
