# From workloads to runs: one job simulates all schedulers of a workload, and keeps the runs that did not change;
# one job scales a workload in many ways, simulates each, and keeps the metrics.
def kept_runs(workload):
    """Return the names of the runs whose options are as they were when their files were made."""
    from swflow.jobs import read_metadata

    files = {name: Path(f"results/runs/{workload}/{name}.parquet") for name in schedulers_of(workload)}
    found = {name: read_metadata(file) for name, file in files.items() if file.is_file()}
    return {
        name
        for name, about in found.items()
        if about.get("options") == schedulers_of(workload)[name] and about.get("code") == fingerprint("simulate")
    }


def to_simulate(wildcards):
    """Say which runs of a workload a job will make; that is for the eye, and no reason to rerun."""
    wanted = schedulers_of(wildcards.workload)
    return ", ".join(sorted(wanted.keys() - kept_runs(wildcards.workload))) or "none unless the workload changed"


rule simulate:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/runs/{workload}/manifest.json",
    params:
        schedulers=lambda wildcards: named_schedulers(schedulers_of(wildcards.workload)),
        folder=lambda wildcards, output: str(Path(output[0]).parent),
        code=fingerprint("simulate"),
    log:
        "results/log/simulate/{workload}.log",
    resources:
        runs=to_simulate,
    message:
        "simulate {wildcards.workload}: {resources.runs}"
    shell:
        "swflow simulate {input} -o {params.folder} --code {params.code} {params.schedulers} 2>&1 | tee {log}"


def sweep_schedulers(workload, sweep):
    """Return the schedulers of a sweep, all options filled in."""
    return options_of(SWEEPS[workload, sweep]["schedulers"])


rule sweep:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/sweeps/{workload}+{sweep}.parquet",
    wildcard_constraints:
        sweep=one_of(config["sweeps"]),
    params:
        command=lambda wildcards: sweep_options(wildcards.sweep, config)[0],
        options=lambda wildcards: sweep_options(wildcards.sweep, config)[1],
        schedulers=lambda wildcards: named_schedulers(sweep_schedulers(wildcards.workload, wildcards.sweep)),
        code=lambda wildcards: fingerprint(sweep_options(wildcards.sweep, config)[0]),
    log:
        "results/log/sweep/{workload}+{sweep}.log",
    threads: 2
    message:
        "{params.command} {wildcards.workload}+{wildcards.sweep}"
    shell:
        "swflow {params.command} {input} -o {output} --threads {threads} {params.options} {params.schedulers} "
        "2>&1 | tee {log}"
