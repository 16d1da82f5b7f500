# From logs to workloads: cleaning, then one step per suffix of the name.
def clean_options(log):
    """Return the options of cleaning a log: the machine and the period of the catalogue, the rules of the config."""
    entry, source = CATALOGUE[log], sources_of(log)
    settings = config["clean"] | source.clean | entry.clean
    drop = settings.pop("drop")
    return command_options(
        settings
        | {
            "drop": drop or ["none"],
            "machine_processors": entry.processors or source.processors,
            "machine_nodes": entry.nodes or source.nodes,
            "from": entry.since,
            "until": entry.until,
        }
    )


def kind_of(step):
    """Return the kind of a step, whatever the replicate."""
    return config["steps"][split_step(step)[0]]["kind"]


# The fits that the steps draw from: name to the options that count when a model is fitted.
FITS = {fit_name(step): fit_options(step) for step in config["steps"].values() if step["kind"] == "model"}


def fitted_option(files):
    """Return the option of a model's command that names what it is to draw from."""
    files = [files] if isinstance(files, str) else sorted(set(files))
    return f"--fitted {files[0]}" if files else ""


def workload_options(names):
    """Return the options of a command that name workloads to make."""
    return " ".join(f"-o results/workloads/{name}.parquet" for name in names)


rule clean:
    input:
        lambda wildcards: log_file(sources_of(wildcards.log)),
    output:
        "results/workloads/{log}.parquet",
    wildcard_constraints:
        log=one_of(CATALOGUE),
    params:
        options=lambda wildcards: clean_options(wildcards.log),
        code=fingerprint("clean"),
    log:
        "results/log/clean/{log}.log",
    benchmark:
        "results/benchmark/clean/{log}.tsv"
    resources:
        mem_mb=memory(500, 150),
        runtime=minutes(2, 0.5),
    message:
        "clean {wildcards.log}"
    shell:
        "swflow clean {input} -o {output} {params.options} 2>&1 | tee {log}"


def step_files(step):
    """Return the files that a step reads beside its workload."""
    file = config["steps"][split_step(step)[0]].get("file")
    return [] if file is None else [file]


rule fit:
    input:
        lambda wildcards: workload_file(wildcards.workload),
    output:
        "results/models/{workload}/{fit}.json",
    wildcard_constraints:
        fit=one_of(FITS),
    params:
        source="results/workloads/{workload}.parquet",
        options=lambda wildcards: command_options(FITS[wildcards.fit]),
        code=fingerprint("model"),
    log:
        "results/log/fit/{workload}/{fit}.log",
    benchmark:
        "results/benchmark/fit/{workload}/{fit}.tsv"
    resources:
        mem_mb=memory(400, 60),
        runtime=minutes(2, 0.5),
    message:
        "fit {wildcards.fit} to {wildcards.workload}"
    shell:
        "swflow model {params.source} --save-fit {output} {params.options} 2>&1 | tee {log}"


rule fit_memory:
    input:
        lambda wildcards: workload_file(wildcards.workload),
    output:
        "results/models/{workload}/memory-{record}.json",
    wildcard_constraints:
        record="used|requested",
    params:
        source="results/workloads/{workload}.parquet",
        code=fingerprint("memory"),
    log:
        "results/log/fit/{workload}/memory-{record}.log",
    benchmark:
        "results/benchmark/fit/{workload}/memory-{record}.tsv"
    resources:
        mem_mb=memory(500, 100),
        runtime=minutes(2, 0.5),
    message:
        "fit {wildcards.record} memory of {wildcards.workload}"
    shell:
        "swflow memory {params.source} --save-fit {output} --from-log {wildcards.record} 2>&1 | tee {log}"


rule step:
    input:
        lambda wildcards: workload_file(wildcards.workload),
        fit=lambda wildcards: fit_file(f"{wildcards.workload}+{wildcards.step}") or [],
        files=lambda wildcards: step_files(wildcards.step),
    output:
        "results/workloads/{workload}+{step}.parquet",
    wildcard_constraints:
        step=f"({one_of(config['steps'])})(@[1-9][0-9]*)?",
    params:
        kind=lambda wildcards: kind_of(wildcards.step),
        source="results/workloads/{workload}.parquet",
        fitted=lambda wildcards, input: fitted_option(input.fit),
        options=lambda wildcards: step_options(wildcards.step, config),
        content=lambda wildcards: [file_digest(file) for file in step_files(wildcards.step)],
        code=lambda wildcards: fingerprint(kind_of(wildcards.step)),
    log:
        "results/log/step/{workload}+{step}.log",
    benchmark:
        "results/benchmark/step/{workload}+{step}.tsv"
    priority: 1 # others wait for it: long chains begin before what nobody waits for
    resources:
        mem_mb=memory(500, 100),
        runtime=minutes(2, 0.5),
    message:
        "{params.kind} {wildcards.workload}+{wildcards.step}"
    shell:
        "swflow {params.kind} {params.source} -o {output} {params.fitted} {params.options} 2>&1 | tee {log}"


for recipe in REPLICATES:
    drop_broken(f"results/workloads/{recipe}.json")


rule replicates:
    input:
        lambda wildcards: sorted({workload_file(parent_of(name)) for name in REPLICATES[wildcards.recipe]}),
        fit=lambda wildcards: sorted({file for file in map(fit_file, REPLICATES[wildcards.recipe]) if file}),
        files=lambda wildcards: step_files(wildcards.recipe.rpartition("+")[2]),
    output:
        "results/workloads/{recipe}.json",
    wildcard_constraints:
        recipe=one_of(REPLICATES),
    params:
        kind=lambda wildcards: kind_of(wildcards.recipe.rpartition("+")[2]),
        names=lambda wildcards: ", ".join(compact(REPLICATES[wildcards.recipe])),
        workloads=lambda wildcards: workload_options(compact(REPLICATES[wildcards.recipe])),
        fitted=lambda wildcards: fitted_option(compact(filter(None, map(fit_file, REPLICATES[wildcards.recipe])))),
        options=lambda wildcards: step_options(wildcards.recipe.rpartition("+")[2], config),
        content=lambda wildcards: [file_digest(file) for file in step_files(wildcards.recipe.rpartition("+")[2])],
        code=lambda wildcards: fingerprint(kind_of(wildcards.recipe.rpartition("+")[2])),
    log:
        "results/log/step/{recipe}.log",
    benchmark:
        "results/benchmark/step/{recipe}.tsv"
    resources:
        mem_mb=memory(500, 100),
        runtime=minutes(5, 5),
    message:
        "{params.kind} {params.names}"
    shell:
        "swflow replicate {params.kind} {params.workloads} --manifest {output} --code {params.code} {params.fitted} "
        "{params.options} 2>&1 | tee {log}"
