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
    message:
        "clean {wildcards.log}"
    shell:
        "swflow clean {input} -o {output} {params.options} 2>&1 | tee {log}"


def step_files(step):
    """Return the files that a step reads beside its workload."""
    file = config["steps"][split_step(step)[0]].get("file")
    return [] if file is None else [file]


rule step:
    input:
        workload="results/workloads/{workload}.parquet",
        files=lambda wildcards: step_files(wildcards.step),
    output:
        "results/workloads/{workload}+{step}.parquet",
    wildcard_constraints:
        step=f"({one_of(config['steps'])})(@[1-9][0-9]*)?",
    params:
        kind=lambda wildcards: kind_of(wildcards.step),
        options=lambda wildcards: step_options(wildcards.step, config),
        content=lambda wildcards: [file_digest(file) for file in step_files(wildcards.step)],
        code=lambda wildcards: fingerprint(kind_of(wildcards.step)),
    log:
        "results/log/step/{workload}+{step}.log",
    message:
        "{params.kind} {wildcards.workload}+{wildcards.step}"
    shell:
        "swflow {params.kind} {input.workload} -o {output} {params.options} 2>&1 | tee {log}"
