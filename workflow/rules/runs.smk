# From workloads to runs. One job brings the runs of a workload under all its schedulers into a folder. The store keeps
# every run under a key of its workload, its options and the code, so the job simulates only those that the store lacks. One
# job scales a workload with all settings of a sweep and keeps the metrics. One job answers what-if questions. One job
# computes the lower bounds of a workload, one divides the waits of its runs by their reasons.
rule simulate:
    input:
        workload="results/workloads/{workload}.parquet",
        plan=plan.simulation,
    output:
        directory("results/runs/{workload}"),
    log:
        "results/log/simulate/{workload}.log",
    benchmark:
        "results/benchmark/simulate/{workload}.tsv"
    wildcard_constraints:
        workload="[^@/]+",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, COMPILING, 100),
        runtime=minutes(plan.catalogue, 5, 2),
    params:
        options=partial(rule_options.simulate_options, plan),
        code=fingerprint("simulate"),
    message:
        "simulate {wildcards.workload}"
    shell:
        "swflow simulate {input.workload} -o results/runs --plan {input.plan} --store results/runs/.store/{params.code} "
        "{params.options} 2>&1 | tee {log}"


# Numbered processors need another kernel, which compiles for longest; so in a new installation it starts first.
use rule simulate as simulate_places with:
    wildcard_constraints:
        workload=one_of(plan.with_places),
    priority: 1


ruleorder: simulate_places > simulate


# One job simulates all replicates of a recipe.
for recipe, replicates in plan.replicates.items():
    if replicates.simulated:

        rule:
            name:
                f"simulate_{recipe}"
            input:
                workloads=[f"results/workloads/{name}.parquet" for name in replicates.simulated],
                plan=plan.simulations(replicates.simulated),
            output:
                [directory(f"results/runs/{name}") for name in replicates.simulated],
            log:
                f"results/log/simulate/{recipe}@.log",
            benchmark:
                f"results/benchmark/simulate/{recipe}@.tsv"
            group:
                "replicates"
            conda:
                ENVIRONMENT
            resources:
                mem_mb=memory(plan.catalogue, COMPILING, 100),
                runtime=minutes(plan.catalogue, 30, 2),
            params:
                options=partial(rule_options.simulate_options, plan),
                code=fingerprint("simulate"),
            message:
                f"simulate replicates of {recipe}"
            shell:
                "swflow simulate {input.workloads} -o results/runs --plan {input.plan} "
                "--store results/runs/.store/{params.code} {params.options} 2>&1 | tee {log}"


rule sweep:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/sweeps/{workload}+{sweep}.parquet",
    log:
        "results/log/sweep/{workload}+{sweep}.log",
    benchmark:
        "results/benchmark/sweep/{workload}+{sweep}.tsv"
    wildcard_constraints:
        sweep=one_of(config["sweeps"]),
    priority: 1  # the longest jobs start first
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, COMPILING, 150),
        runtime=minutes(plan.catalogue, 30, 10),
    params:
        command=partial(rule_options.sweep_command, plan),  # sweep; or adjust, which searches for a factor
        options=partial(rule_options.options_of_sweep, plan),
        code=partial(rule_options.sweep_code, plan),
    message:
        "{params.command} {wildcards.workload}+{wildcards.sweep}"
    # Two threads use little more than one core, since half of the work holds Python's global lock.
    shell:
        "swflow {params.command} {input} -o {output} --threads 2 {params.options} 2>&1 | tee {log}"


rule whatif:
    input:
        "results/workloads/{workload}.parquet",
    output:
        page=report(
            "results/whatif/{study}/{workload}.html",
            caption="../report/whatif.rst",
            category="{study}",
            labels={"workload": "{workload}", "figure": "what if"},
        ),
        table="results/whatif/{study}/{workload}.csv",
        data="results/whatif/{study}/{workload}.parquet",
    log:
        "results/log/whatif/{study}/{workload}.log",
    benchmark:
        "results/benchmark/whatif/{study}/{workload}.tsv"
    wildcard_constraints:
        study=one_of(config["studies"]),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, COMPILING, 100),
        runtime=minutes(plan.catalogue, 10, 10),
    params:
        options=partial(rule_options.whatif_options, plan),
        code=fingerprint("whatif"),
    message:
        "whatif {wildcards.workload}, {wildcards.study}"
    shell:
        "swflow whatif {input} {params.options} --study {wildcards.study:q} "
        "-o {output.page} -o {output.table} -o {output.data} 2>&1 | tee {log}"


# Evaluate forecasts of the recorded waits.
rule forecast:
    input:
        "results/workloads/{workload}.parquet",
    output:
        table="results/forecasts/{study}/{workload}.csv",
        data="results/forecasts/{study}/{workload}.parquet",
    log:
        "results/log/forecast/{study}/{workload}.log",
    benchmark:
        "results/benchmark/forecast/{study}/{workload}.tsv"
    wildcard_constraints:
        study=one_of(config["studies"]),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, COMPILING, 200),
        runtime=minutes(plan.catalogue, 20, 10),
    params:
        options=partial(rule_options.forecast_options, plan),
        code=fingerprint("forecast"),
    message:
        "forecast {wildcards.workload}, {wildcards.study}"
    shell:
        "swflow forecast {input} --evaluate {params.options} --study {wildcards.study:q} "
        "-o {output.table} -o {output.data} 2>&1 | tee {log}"


rule bound:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/bounds/{workload}.parquet",
    log:
        "results/log/bound/{workload}.log",
    benchmark:
        "results/benchmark/bound/{workload}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 400, 100),
        runtime=minutes(plan.catalogue, 5, 2),
    params:
        code=fingerprint("bound"),
    message:
        "bound {wildcards.workload}"
    shell:
        "swflow bound {input} -o {output} 2>&1 | tee {log}"


rule why:
    input:
        workload="results/workloads/{workload}.parquet",
        runs="results/runs/{workload}",
    output:
        "results/wait_reasons/{workload}.parquet",
    log:
        "results/log/why/{workload}.log",
    benchmark:
        "results/benchmark/why/{workload}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory(plan.catalogue, 400, 100),
        runtime=minutes(plan.catalogue, 5, 2),
    params:
        code=fingerprint("why"),
    message:
        "why {wildcards.workload}"
    shell:
        "swflow why {input.workload} --run {input.runs} -o {output} 2>&1 | tee {log}"
