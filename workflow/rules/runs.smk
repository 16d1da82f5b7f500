# From workloads to runs. One job simulates all schedulers of a workload, and keeps runs that are up to date. One job
# scales a workload with all settings of a sweep and keeps the metrics. One job answers what-if questions. One job
# computes the lower bounds of a workload.
rule simulate:
    input:
        plan.simulate_inputs,
    output:
        "results/runs/{recipe}.json",
    params:
        sources=plan.simulate_sources,
        schedulers=plan.simulate_schedulers,
        options=plan.simulate_options,
        code=fingerprint("simulate"),
    log:
        "results/log/simulate/{recipe}.log",
    benchmark:
        "results/benchmark/simulate/{recipe}.tsv"
    priority: plan.simulate_priority
    resources:
        mem_mb=plan.memory(COMPILING, 100),
        runtime=plan.minutes(5, 2),
        runs=plan.simulated,
    message:
        "simulate {resources.runs}"
    shell:
        "swflow simulate {params.sources} -o {output} --plan results/simulations.json --code {params.code} "
        "{params.options} 2>&1 | tee {log}"


# Simulate all replicates of a recipe in one job.
use rule simulate as simulate_replicates with:
    wildcard_constraints:
        recipe=one_of(plan.replicates),
    resources:
        mem_mb=plan.memory(COMPILING, 0),
        runtime=plan.minutes(30, 0),
        runs=plan.simulated,


ruleorder: simulate_replicates > simulate


rule sweep:
    input:
        plan.source_file,
    output:
        "results/sweeps/{workload}+{sweep}.parquet",
    wildcard_constraints:
        sweep=one_of(config["sweeps"]),
    params:
        source="results/workloads/{workload}.parquet",
        command=plan.sweep_command,
        options=plan.sweep_options,
        code=plan.sweep_code,
    log:
        "results/log/sweep/{workload}+{sweep}.log",
    benchmark:
        "results/benchmark/sweep/{workload}+{sweep}.tsv"
    priority: 1 # the longest jobs start first
    resources:
        mem_mb=plan.memory(COMPILING, 150),
        runtime=plan.minutes(30, 10),
    message:
        "{params.command} {wildcards.workload}+{wildcards.sweep}"
    # Two threads use little more than one core, since half of the work holds Python's global lock.
    shell:
        "swflow {params.command} {params.source} -o {output} --threads 2 {params.options} 2>&1 | tee {log}"


rule whatif:
    input:
        plan.source_file,
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
        options=plan.whatif_options,
        code=fingerprint("whatif"),
    log:
        "results/log/whatif/{study}/{workload}.log",
    benchmark:
        "results/benchmark/whatif/{study}/{workload}.tsv"
    resources:
        mem_mb=plan.memory(COMPILING, 100),
        runtime=plan.minutes(10, 10),
    message:
        "whatif {wildcards.workload}, {wildcards.study}"
    shell:
        "swflow whatif {params.source} {params.options} --study {wildcards.study:q} "
        "-o {output.page} -o {output.table} -o {output.data} 2>&1 | tee {log}"


rule bound:
    input:
        plan.source_file,
    output:
        "results/bounds/{workload}.parquet",
    wildcard_constraints:
        workload=one_of(plan.bounds),
    params:
        source="results/workloads/{workload}.parquet",
        code=fingerprint("bound"),
    log:
        "results/log/bound/{workload}.log",
    benchmark:
        "results/benchmark/bound/{workload}.tsv"
    resources:
        mem_mb=plan.memory(400, 100),
        runtime=plan.minutes(5, 2),
    message:
        "bound {wildcards.workload}"
    shell:
        "swflow bound {params.source} -o {output} 2>&1 | tee {log}"
