# From workloads to runs: one job simulates all schedulers of a workload, and keeps the runs that did not change.
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
        schedulers=lambda wildcards: command_options(
            {"scheduler": [f"{name}={canonical(spec)}" for name, spec in schedulers_of(wildcards.workload).items()]}
        ),
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
