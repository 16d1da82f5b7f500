# From workloads to runs: one job simulates all schedulers of a workload, and all replicates of a recipe, and keeps the
# runs that did not change; one job scales a workload in many ways, simulates each, and keeps the metrics; one job
# answers what would have been under other schedulers, machines, estimates, arrivals and run times.
for workload in RUNS:
    drop_broken(runs_file(workload))  # a manifest stands for its runs, and alone it would be believed


def in_groups():
    """Say whether jobs go out in groups, whose resources are numbers that can be added up, and no words."""
    return workflow.group_settings is not None and bool(workflow.group_settings.overwrite_groups)


def simulated(workloads):
    """Say which runs of workloads a job will make; that is for the eye, and no reason to rerun."""
    if in_groups():
        return len(workloads)
    wanted = {}
    for workload in workloads:
        names = unmade(workload, schedulers_of(workload), fingerprint("simulate"), "results/runs")
        wanted.setdefault(", ".join(names), []).append(workload)
    parts = [f"{', '.join(compact(found))}: {names}" for names, found in wanted.items() if names]
    return "; ".join(parts) or f"{', '.join(compact(workloads))}: none unless the workload changed"


rule simulate:
    input:
        lambda wildcards: workload_file(wildcards.workload),
    output:
        "results/runs/{workload}/manifest.json",
    params:
        source="results/workloads/{workload}.parquet",
        schedulers=lambda wildcards: named_schedulers(schedulers_of(wildcards.workload)),
        folder=lambda wildcards, output: str(Path(output[0]).parent),
        code=fingerprint("simulate"),
    log:
        "results/log/simulate/{workload}.log",
    benchmark:
        "results/benchmark/simulate/{workload}.tsv"
    resources:
        mem_mb=memory(COMPILING, 100),
        runtime=minutes(5, 2),
        runs=lambda wildcards: simulated([wildcards.workload]),
    message:
        "simulate {resources.runs}"
    shell:
        "swflow simulate {params.source} -o {params.folder} --code {params.code} {params.schedulers} 2>&1 | tee {log}"


def replicated_schedulers(recipe):
    """Return the options of a command that name the schedulers of a recipe's replicates, and which has which."""
    wanted = {name: tuple(schedulers_of(name)) for name in REPLICATES[recipe] if name in RUNS}
    options = named_schedulers({key: spec for name in wanted for key, spec in schedulers_of(name).items()})
    if len(set(wanted.values())) == 1:
        return options
    only = [
        f"--only {name}={','.join(chosen)}"
        for chosen in dict.fromkeys(wanted.values())
        for name in compact(name for name in wanted if wanted[name] == chosen)
    ]
    return f"{options} {' '.join(only)}"


def replicates_to_simulate(recipe):
    """Return the replicates of a recipe that are simulated, not only steps on the way."""
    return [name for name in REPLICATES[recipe] if name in RUNS]


rule simulate_replicates:
    input:
        "results/workloads/{recipe}.json",
    output:
        "results/runs/{recipe}.json",
    wildcard_constraints:
        recipe=one_of(REPLICATES),
    params:
        sources=lambda wildcards: " ".join(
            f"results/workloads/{name}.parquet" for name in compact(replicates_to_simulate(wildcards.recipe))
        ),
        schedulers=lambda wildcards: replicated_schedulers(wildcards.recipe),
        code=fingerprint("simulate"),
    log:
        "results/log/simulate/{recipe}.log",
    benchmark:
        "results/benchmark/simulate/{recipe}.tsv"
    resources:
        mem_mb=memory(COMPILING, 0),
        runtime=minutes(30, 0),
        runs=lambda wildcards: simulated(replicates_to_simulate(wildcards.recipe)),
    message:
        "simulate {resources.runs}"
    shell:
        "swflow simulate {params.sources} -o {output} --code {params.code} {params.schedulers} 2>&1 | tee {log}"


def sweep_schedulers(workload, sweep):
    """Return the schedulers of a sweep, all options filled in."""
    return options_of(SWEEPS[workload, sweep]["schedulers"])


rule sweep:
    input:
        lambda wildcards: workload_file(wildcards.workload),
    output:
        "results/sweeps/{workload}+{sweep}.parquet",
    wildcard_constraints:
        sweep=one_of(config["sweeps"]),
    params:
        source="results/workloads/{workload}.parquet",
        command=lambda wildcards: sweep_options(wildcards.sweep, config)[0],
        options=lambda wildcards: sweep_options(wildcards.sweep, config)[1],
        schedulers=lambda wildcards: named_schedulers(sweep_schedulers(wildcards.workload, wildcards.sweep)),
        code=lambda wildcards: fingerprint(sweep_options(wildcards.sweep, config)[0]),
    log:
        "results/log/sweep/{workload}+{sweep}.log",
    benchmark:
        "results/benchmark/sweep/{workload}+{sweep}.tsv"
    resources:
        mem_mb=memory(COMPILING, 150),
        runtime=minutes(30, 10),
    message:
        "{params.command} {wildcards.workload}+{wildcards.sweep}"
    # Two threads keep little more than one core busy: half of the work holds Python's lock.
    shell:
        "swflow {params.command} {params.source} -o {output} --threads 2 {params.options} {params.schedulers} "
        "2>&1 | tee {log}"


def whatif_files():
    """Return the pages of all what-if tables whose logs are there."""
    return [f"results/whatif/{study}/{workload}.html" for study, workload in WHATIFS if is_reached(workload)]


def whatif_options(wildcards):
    """Return the options of a what-if table, those of its schedulers filled in."""
    planned = dict(WHATIFS[wildcards.study, wildcards.workload])
    named = options_of(planned.pop("schedulers"))
    return command_options(planned | {"scheduler": [f"{name}: {canonical(spec)}" for name, spec in named.items()]})


rule whatif:
    input:
        lambda wildcards: workload_file(wildcards.workload),
    output:
        page=report(
            "results/whatif/{study}/{workload}.html",
            caption="../report/whatif.rst",
            category="{study}",
            labels={"workload": "{workload}", "figure": "what if"},
        ),
        table="results/whatif/{study}/{workload}.csv",
        data="results/whatif/{study}/{workload}.parquet",
    wildcard_constraints:
        study=one_of(config["studies"]),
    params:
        source="results/workloads/{workload}.parquet",
        options=whatif_options,
        seed=config["seed"],
        code=fingerprint("whatif"),
    log:
        "results/log/whatif/{study}/{workload}.log",
    benchmark:
        "results/benchmark/whatif/{study}/{workload}.tsv"
    resources:
        mem_mb=memory(COMPILING, 100),
        runtime=minutes(10, 10),
    message:
        "whatif {wildcards.workload}, {wildcards.study}"
    shell:
        "swflow whatif {params.source} {params.options} --seed {params.seed} --study {wildcards.study:q} "
        "-o {output.page} -o {output.table} -o {output.data} "
        "2>&1 | tee {log}"
