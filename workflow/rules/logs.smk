# From the catalogue to results/logs: recorded logs are downloaded, synthetic logs are generated. Rule `reach` tries
# logs whose download may fail first; runs of a missing log are left out, unless the config contains `strict: true`. On
# a cluster, downloads run on the node of Snakemake, since compute nodes often have no network.
MIRROR = command_options({"mirror": config["mirror"]})  # not a parameter, since the mirror does not affect the log


checkpoint reach:
    output:
        "results/logs/reached.json",
    log:
        "results/log/reach.log",
    localrule: True
    conda:
        ENVIRONMENT
    resources:
        network=1,
        mem_mb=2000,
        runtime=60,
        mirror=MIRROR,
    params:
        logs=plan.unsure,
        options=partial(rule_options.reach_options, plan),
        entries=plan.origin,
        code=fingerprint("reach"),
    message:
        "reach {params.logs}"
    shell:
        "swflow reach {params.logs} -o {output} {resources.mirror} {params.options} 2>&1 | tee {log}"


rule fetch:
    output:
        "results/logs/{log}.swf.gz",
    log:
        "results/log/fetch/{log}.log",
    benchmark:
        "results/benchmark/fetch/{log}.tsv"
    wildcard_constraints:
        log=one_of(plan.recorded),
    priority: 2  # every chain of jobs starts here
    localrule: True
    conda:
        ENVIRONMENT
    resources:
        network=1,
        mem_mb=2000,
        runtime=30,
        mirror=MIRROR,
    params:
        options=partial(rule_options.fetch_options, plan),
        entry=plan.origin,
        code=fingerprint("fetch"),
    message:
        "fetch {wildcards.log}"
    shell:
        "swflow fetch {wildcards.log:q} -o {output:q} {resources.mirror} {params.options} 2>&1 | tee {log}"


rule generate:
    output:
        "results/logs/{log}.swf.gz",
    log:
        "results/log/generate/{log}.log",
    benchmark:
        "results/benchmark/generate/{log}.tsv"
    wildcard_constraints:
        log=one_of(plan.synthetic),
    priority: 2
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 500, 0),
        runtime=minutes(plan.catalogue, 2, 0),
    params:
        model=partial(rule_options.generated_model, plan),
        options=partial(rule_options.generate_options, plan),
        code=partial(rule_options.generate_code, plan),
    message:
        "generate {wildcards.log} by {params.model}"
    shell:
        "swflow generate {params.model:q} -o {output:q} --name {wildcards.log:q} {params.options} 2>&1 | tee {log}"
