# From logs to workloads: cleaning, then one step per suffix of the name.
rule clean:
    input:
        plan.raw_log_file,
    output:
        "results/workloads/{log}.parquet",
    wildcard_constraints:
        log=one_of(plan.catalogue),
    params:
        options=plan.clean_options,
        content=plan.log_content,
        code=fingerprint("clean"),
    log:
        "results/log/clean/{log}.log",
    benchmark:
        "results/benchmark/clean/{log}.tsv"
    priority: 2
    resources:
        mem_mb=plan.memory(500, 150),
        runtime=plan.minutes(2, 0.5),
    message:
        "clean {wildcards.log}"
    shell:
        "swflow clean {input} -o {output} {params.options} 2>&1 | tee {log}"


rule fit:
    input:
        plan.source_file,
    output:
        "results/models/{workload}/{fit}.json",
    wildcard_constraints:
        fit=one_of(plan.fits),
    params:
        source="results/workloads/{workload}.parquet",
        options=plan.fit_options,
        code=fingerprint("model"),
    log:
        "results/log/fit/{workload}/{fit}.log",
    benchmark:
        "results/benchmark/fit/{workload}/{fit}.tsv"
    resources:
        mem_mb=plan.memory(400, 60),
        runtime=plan.minutes(2, 0.5),
    message:
        "fit {wildcards.fit} to {wildcards.workload}"
    shell:
        "swflow model {params.source} --save-fit {output} {params.options} 2>&1 | tee {log}"


rule fit_memory:
    input:
        plan.source_file,
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
        mem_mb=plan.memory(500, 100),
        runtime=plan.minutes(2, 0.5),
    message:
        "fit {wildcards.record} memory of {wildcards.workload}"
    shell:
        "swflow memory {params.source} --save-fit {output} --from-log {wildcards.record} 2>&1 | tee {log}"


rule step:
    input:
        plan.step_sources,
        fit=plan.step_fits,
        files=plan.step_files,
    output:
        "results/workloads/{workload}+{step}.parquet",
    wildcard_constraints:
        step=f"({one_of(config['steps'])})(@[1-9][0-9]*)?",
    params:
        kind=plan.step_kind,
        source="results/workloads/{workload}.parquet",
        options=plan.step_options,
        content=plan.step_content,
        code=plan.step_code,
    log:
        "results/log/step/{workload}+{step}.log",
    benchmark:
        "results/benchmark/step/{workload}+{step}.tsv"
    priority: 1 # other jobs depend on it, so long chains start first
    resources:
        mem_mb=plan.memory(500, 100),
        runtime=plan.minutes(2, 0.5),
    message:
        "{params.kind} {wildcards.workload}+{wildcards.step}"
    shell:
        "swflow {params.kind} {params.source} -o {output} {params.options} 2>&1 | tee {log}"


# One job generates all replicates of a recipe; `results/workloads/{recipe}.json` lists them.
rule replicates:
    input:
        plan.step_sources,
        fit=plan.step_fits,
        files=plan.step_files,
    output:
        "results/workloads/{recipe}.json",
    wildcard_constraints:
        recipe=one_of(plan.replicates),
    params:
        kind=plan.step_kind,
        names=plan.replicate_names,
        outputs=plan.replicate_outputs,
        options=plan.step_options,
        content=plan.step_content,
        code=plan.step_code,
    log:
        "results/log/step/{recipe}.log",
    benchmark:
        "results/benchmark/step/{recipe}.tsv"
    resources:
        mem_mb=plan.memory(500, 100),
        runtime=plan.minutes(5, 5),
    message:
        "{params.kind} {params.names}"
    shell:
        "swflow replicate {params.kind} {params.outputs} --manifest {output} --code {params.code} {params.options} "
        "2>&1 | tee {log}"
