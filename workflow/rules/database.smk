# From runs to the database. The declared output is a summary: Snakemake deletes an output before it is made again,
# and whoever reads the database must find the old one until the new one takes its place.
DATABASE = Path("results/swflow.duckdb")
SUMMARY = Path("results/swflow.json")

if SUMMARY.exists() and not DATABASE.exists():
    SUMMARY.unlink()  # the summary stands for the database, and alone it would be believed


def loaded_files(wildcards):
    """Return the manifests of the runs, the sweeps, the fits and the what-ifs whose logs are there."""
    workloads = [workload for workload in RUNS if is_reached(workload)]
    fits = {fit_file(workload) for workload in workloads if "+" in workload} - {""}
    return [
        *sorted({runs_file(workload) for workload in workloads}),
        *(f"results/sweeps/{workload}+{sweep}.parquet" for workload, sweep in SWEEPS if is_reached(workload)),
        *sorted(fits),
        *(f"results/whatif/{study}/{workload}.parquet" for study, workload in WHATIFS if is_reached(workload)),
    ]


def expected_runs(wildcards, input):
    """Return the digest of the runs and sweeps whose logs are there."""
    return expected(
        {workload: schedulers_of(workload) for workload in RUNS if is_reached(workload)},
        {
            f"{workload}+{sweep}": sweep_schedulers(workload, sweep)
            for workload, sweep in SWEEPS
            if is_reached(workload)
        },
    )


def runs_mb(wildcards, input):
    """Return the size (MB) of all runs: what a load reads. Its input is manifests, which say nothing of that."""
    return sum(file.stat().st_size for file in Path("results/runs").glob("*/*.parquet")) / 1e6


def database_mb(wildcards, input):
    """Return the size (MB) of the database: what figures, tables and the report read. Their input is its summary."""
    return DATABASE.stat().st_size / 1e6 if DATABASE.is_file() else 0


rule load:
    input:
        loaded_files,
    output:
        str(SUMMARY),
    params:
        database=str(DATABASE),
        expect=expected_runs,
        left_out=left_out_options,
        code=fingerprint("load"),
    log:
        "results/log/load.log",
    benchmark:
        "results/benchmark/load.tsv"
    resources:
        mem_mb=memory(800, 4, runs_mb),
        runtime=minutes(5, 0.01, runs_mb),
    message:
        "load {params.database}"
    shell:
        "swflow load {input} --database {params.database} --expect {params.expect} {params.left_out} "
        "--summary {output} 2>&1 | tee {log}"
