# From logs to workloads: cleaning, then one step per suffix of the name.
rule clean:
    input:
        plan.inputs,
    output:
        "results/workloads/{log}.parquet",
    log:
        "results/log/clean/{log}.log",
    benchmark:
        "results/benchmark/clean/{log}.tsv"
    priority: 2
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 500, 150),
        runtime=minutes(plan.catalogue, 2, 0.5),
    params:
        options=partial(rule_options.clean_options, plan),
        entry=plan.origin,
        code=fingerprint("clean"),
    message:
        "clean {wildcards.log}"
    shell:
        "swflow clean {input} -o {output} {params.options} 2>&1 | tee {log}"


# Steps that differ only in how jobs are drawn share a fitted model.
rule fit:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/models/{workload}/{fit}.json",
    log:
        "results/log/fit/{workload}/{fit}.log",
    benchmark:
        "results/benchmark/fit/{workload}/{fit}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 500, 100),
        runtime=minutes(plan.catalogue, 2, 0.5),
    params:
        kind=partial(rule_options.fit_kind, plan),
        options=partial(rule_options.options_of_fit, plan),
        code=partial(rule_options.fit_code, plan),
    message:
        "fit {wildcards.fit} to {wildcards.workload}"
    shell:
        "swflow {params.kind} {input} --save-fit {output} {params.options} 2>&1 | tee {log}"


# `config: steps` defines the steps; their kind is the command that applies them.
rule step:
    input:
        plan.inputs,
        workload="results/workloads/{workload}.parquet",
    output:
        "results/workloads/{workload}+{step}.parquet",
    log:
        "results/log/step/{workload}+{step}.log",
    benchmark:
        "results/benchmark/step/{workload}+{step}.tsv"
    wildcard_constraints:
        workload="[^@]+",
        step=one_of(config["steps"]),
    priority: 1  # other jobs depend on it, so long chains start first
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 500, 100),
        runtime=minutes(plan.catalogue, 2, 0.5),
    params:
        kind=partial(rule_options.step_kind, plan),
        options=partial(rule_options.options_of_step, plan),
        code=partial(rule_options.step_code, plan),
    message:
        "{params.kind} {wildcards.workload}+{wildcards.step}"
    shell:
        "swflow {params.kind} {input.workload} -o {output} {params.options} 2>&1 | tee {log}"


# One job draws all replicates of a recipe, LOG+STEP@1, LOG+STEP@2 and so on, except those that the store has.
for recipe, replicates in plan.replicates.items():

    rule:
        name:
            f"replicates_{recipe}"
        input:
            replicates.inputs,
        output:
            replicates.outputs,
        log:
            f"results/log/step/{recipe}.log",
        benchmark:
            f"results/benchmark/step/{recipe}.tsv"
        group:
            "replicates"
        conda:
            ENVIRONMENT
        resources:
            mem_mb=memory(plan.catalogue, 500, 100),
            runtime=minutes(plan.catalogue, 5, 5),
        params:
            kind=replicates.kind,
            outputs=[f"-o {file}" for file in replicates.outputs],
            options=partial(rule_options.replicate_options, plan, recipe),
            code=fingerprint("replicate", replicates.kind),
        message:
            f"{replicates.kind} replicates of {recipe}"
        shell:
            "swflow replicate {params.kind} {params.outputs} --store results/workloads/.store/{params.code} "
            "{params.options} 2>&1 | tee {log}"
