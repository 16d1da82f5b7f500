# From runs to the database. The declared output is a summary: Snakemake deletes an output before it is made again,
# and whoever reads the database must find the old one until the new one takes its place.
DATABASE = Path("results/swflow.duckdb")
SUMMARY = Path("results/swflow.json")

if SUMMARY.exists() and not DATABASE.exists():
    SUMMARY.unlink()  # the summary stands for the database, and alone it would be believed


rule load:
    input:
        expand("results/runs/{workload}/manifest.json", workload=RUNS),
        [f"results/sweeps/{workload}+{sweep}.parquet" for workload, sweep in SWEEPS],
    output:
        str(SUMMARY),
    params:
        database=str(DATABASE),
        expect=expected(
            {workload: schedulers_of(workload) for workload in RUNS},
            {f"{workload}+{sweep}": sweep_schedulers(workload, sweep) for workload, sweep in SWEEPS},
        ),
        code=fingerprint("load"),
    log:
        "results/log/load.log",
    message:
        "load {params.database}"
    shell:
        "swflow load {input} --database {params.database} --expect {params.expect} --summary {output} 2>&1 | tee {log}"
