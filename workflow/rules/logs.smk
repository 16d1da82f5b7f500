# From the catalogue to results/logs: recorded logs are downloaded, synthetic logs are generated. Rule `reach` tries
# logs whose download may fail first; runs of a missing log are left out, unless the config contains `strict: true`.
checkpoint reach:
    output:
        "results/logs/reached.json",
    params:
        logs=" ".join(plan.unsure),
        entries=plan.origins(),
        catalogue=plan.catalogue_options(),
        code=fingerprint("reach"),
    log:
        "results/log/reach.log",
    resources:
        network=1,
        mem_mb=2000,
        runtime=60,
        mirror=plan.mirror_option(),
    message:
        "reach {params.logs}"
    shell:
        "swflow reach {params.logs} -o {output} {resources.mirror} {params.catalogue} 2>&1 | tee {log}"


rule fetch:
    input:
        plan.local_file,
    output:
        "results/logs/{log}.swf.gz",
    wildcard_constraints:
        log=one_of(plan.recorded),
    params:
        catalogue=plan.catalogue_options,
        entry=plan.origin_of,
        code=fingerprint("fetch"),
    log:
        "results/log/fetch/{log}.log",
    benchmark:
        "results/benchmark/fetch/{log}.tsv"
    priority: 2 # every chain of jobs starts here
    resources:
        network=1,
        mem_mb=2000,
        runtime=30,
        mirror=plan.mirror_option(), # not a parameter, since the mirror does not affect the log
    message:
        "fetch {wildcards.log}"
    shell:
        "swflow fetch {wildcards.log:q} -o {output:q} {resources.mirror} {params.catalogue} 2>&1 | tee {log}"


rule generate:
    output:
        "results/logs/{log}.swf.gz",
    wildcard_constraints:
        log=one_of(plan.synthetic),
    params:
        model=plan.model_of_log,
        options=plan.generate_options,
        code=plan.code_of_model,
    log:
        "results/log/generate/{log}.log",
    benchmark:
        "results/benchmark/generate/{log}.tsv"
    priority: 2
    resources:
        mem_mb=plan.memory(500, 0),
        runtime=plan.minutes(2, 0),
    message:
        "generate {wildcards.log} by {params.model}"
    shell:
        "swflow generate {params.model:q} -o {output:q} --name {wildcards.log:q} {params.options} 2>&1 | tee {log}"
