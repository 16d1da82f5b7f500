# From the catalogue to results/logs: recorded logs are fetched, synthetic ones generated.
RECORDED = [
    name for name, log in CATALOGUE.items() if log.of is None and log.generate is None and not is_imported(log)
]
SYNTHETIC = [name for name, log in CATALOGUE.items() if log.generate is not None]


def one_of(names):
    """Return a pattern that matches these names only; none matches nothing."""
    return "|".join(name.replace(".", r"\.") for name in names) or "(?!)"


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
    resources:
        network=1,
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
    message:
        "generate {wildcards.log} by {params.model}"
    shell:
        "swflow generate {params.model:q} -o {output:q} --name {wildcards.log:q} {params.options} 2>&1 | tee {log}"
