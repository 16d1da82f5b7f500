# From the catalogue to results/logs: recorded logs are fetched, synthetic ones generated. A log that may not be found
# is tried first of all; if it is missing, its runs are left out, unless the config says `strict: true`.
RECORDED = [
    name for name, log in CATALOGUE.items() if log.of is None and log.generate is None and not is_imported(log)
]
SYNTHETIC = [name for name, log in CATALOGUE.items() if log.generate is not None]


def one_of(names):
    """Return a pattern that matches these names only; none matches nothing."""
    return "|".join(name.replace(".", r"\.").replace("+", r"\+") for name in names) or "(?!)"


def origin(log):
    """Return what the catalogue says of a log's file: with another file it is another log."""
    entry = CATALOGUE[log]
    return {key: getattr(entry, key) for key in ("file", "url", "path", "jobs", "sha256")}


def where_described(log):
    """Return the options that tell fetch where a log is: its entry in the config, else the catalogues."""
    return {"entry": canonical(OWN_LOGS[log])} if log in OWN_LOGS else {"catalogue": config["catalogue"]}


def generation(log):
    """Return the options that generate a synthetic log."""
    entry = CATALOGUE[log]
    return entry.parameters | {"processors": entry.processors, "jobs": entry.jobs, "seed": config["seed"]}


def logs_behind(workload):
    """Return the recorded logs that a workload is made of: its own, and those that models of its steps were fitted to."""
    return [sources_of(log_of(source)).name for source in sources_behind(workload, config["steps"])]


def unsure_logs():
    """Return the recorded logs that the plan needs and that are neither at hand nor in a mirror that is a folder."""
    needed = {log for workload in [*RUNS, *(workload for workload, _ in SWEEPS)] for log in logs_behind(workload)}
    if config["strict"]:
        return []
    recorded = needed & set(RECORDED) - set(OWN_LOGS)
    return sorted(log for log in recorded if not is_at_hand(CATALOGUE[log], config["mirror"]))


try:
    UNSURE = unsure_logs()
except SwflowError as error:
    sys.exit(f"config: {error}")
REACHED = Path("results/logs/reached.json")
ENDED = [] # not empty when all jobs are done


def missing_logs():
    """Return the logs that cannot be fetched, each with the reason; a dry run hopes for those that were never tried."""
    if not UNSURE or (workflow.dryrun and not REACHED.is_file()):
        return {}
    if not workflow.dryrun and not ENDED:
        checkpoints.reach.get()
    missing = json.loads(REACHED.read_text())["missing"]
    return {log: missing[log] for log in UNSURE if log in missing}


def is_reached(workload):
    """Say whether the logs of a workload are there, or are hoped for."""
    return not UNSURE or not missing_logs().keys() & set(logs_behind(workload))


def left_out():
    """Return what is left out: the log that is missing, a workload of it, and the workload's schedulers or none."""
    planned = [(workload, workload, schedulers) for workload, schedulers in RUNS.items()]
    planned += [(workload, f"{workload}+{sweep}", []) for workload, sweep in SWEEPS]
    return [
        (next(log for log in logs_behind(workload) if log in missing_logs()), name, schedulers)
        for workload, name, schedulers in planned
        if not is_reached(workload)
    ]


def left_out_options(wildcards):
    """Return the options of a command that name what is left out."""
    by_schedulers = {}
    for log, workload, schedulers in left_out():
        by_schedulers.setdefault((log, ",".join(schedulers)), []).append(workload)
    return command_options(
        {
            "left_out": [
                f"{log}:{name}={schedulers}"
                for (log, schedulers), workloads in by_schedulers.items()
                for name in compact(workloads)
            ],
            "reached": str(REACHED) if UNSURE else None,
        }
    )


def say_left_out():
    """Name what was left out, for whoever looks at the end of the run."""
    if not UNSURE or not REACHED.is_file():
        return
    ENDED.append(True)
    rows, missing = left_out(), missing_logs()
    for log in dict.fromkeys(log for log, _, _ in rows):
        runs = sum(len(schedulers) or 1 for name, _, schedulers in rows if name == log)
        print(f"left out: {runs} runs and sweeps of {missing[log]}", file=sys.stderr)
    if rows:
        print("left out: to try again: snakemake --forcerun reach; to fail instead: strict: true", file=sys.stderr)


checkpoint reach:
    output:
        str(REACHED),
    params:
        logs=" ".join(UNSURE),
        entries=canonical({log: origin(log) for log in UNSURE}),
        catalogue=command_options({"catalogue": config["catalogue"]}),
        code=fingerprint("reach"),
    log:
        "results/log/reach.log",
    resources:
        network=1,
        mem_mb=2000,
        runtime=60,
        mirror=command_options({"mirror": config["mirror"]}),
    message:
        "reach {params.logs}"
    shell:
        "swflow reach {params.logs} -o {output} {resources.mirror} {params.catalogue} 2>&1 | tee {log}"


rule fetch:
    input:
        lambda wildcards: CATALOGUE[wildcards.log].path or [],
    output:
        "results/logs/{log}.swf.gz",
    wildcard_constraints:
        log=one_of(RECORDED),
    params:
        catalogue=lambda wildcards: command_options(where_described(wildcards.log)),
        entry=lambda wildcards: canonical(origin(wildcards.log)),
        code=fingerprint("fetch"),
    log:
        "results/log/fetch/{log}.log",
    benchmark:
        "results/benchmark/fetch/{log}.tsv"
    resources:
        network=1,
        mem_mb=2000,
        runtime=30,
        mirror=command_options({"mirror": config["mirror"]}), # no parameter: another mirror is no other log
    message:
        "fetch {wildcards.log}"
    shell:
        "swflow fetch {wildcards.log:q} -o {output:q} {resources.mirror} {params.catalogue} 2>&1 | tee {log}"


rule generate:
    output:
        "results/logs/{log}.swf.gz",
    wildcard_constraints:
        log=one_of(SYNTHETIC),
    params:
        model=lambda wildcards: CATALOGUE[wildcards.log].generate,
        options=lambda wildcards: command_options(generation(wildcards.log)),
        code=lambda wildcards: fingerprint(f"generate_{CATALOGUE[wildcards.log].generate}"),
    log:
        "results/log/generate/{log}.log",
    benchmark:
        "results/benchmark/generate/{log}.tsv"
    resources:
        mem_mb=memory(500, 0),
        runtime=minutes(2, 0),
    message:
        "generate {wildcards.log} by {params.model}"
    shell:
        "swflow generate {params.model:q} -o {output:q} --name {wildcards.log:q} {params.options} 2>&1 | tee {log}"
