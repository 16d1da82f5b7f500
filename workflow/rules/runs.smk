# From workloads to runs. One job simulates all schedulers of a workload, into a folder with a file per scheduler. One
# job scales a workload with all settings of a sweep and keeps the metrics. One job answers what-if questions. One job
# computes the lower bounds of a workload, one divides the waits of its runs by their reasons.
rule simulate:
    input:
        "results/workloads/{workload}.parquet",
    output:
        directory("results/runs/{workload}"),
    wildcard_constraints:
        workload="[^@/]+",
    params:
        schedulers=plan.simulated(),
        options=plan.options("simulate"),
        code=fingerprint("simulate"),
    log:
        "results/log/simulate/{workload}.log",
    benchmark:
        "results/benchmark/simulate/{workload}.tsv"
    resources:
        mem_mb=plan.memory(COMPILING, 100),
        runtime=plan.minutes(5, 2),
    message:
        "simulate {wildcards.workload}"
    shell:
        "swflow simulate {input} -o results/runs --plan results/simulations.json {params.options} 2>&1 | tee {log}"


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
                [f"results/workloads/{name}.parquet" for name in replicates.simulated],
            output:
                [directory(f"results/runs/{name}") for name in replicates.simulated],
            params:
                schedulers=plan.simulated(replicates.simulated),
                options=plan.options("simulate"),
                code=fingerprint("simulate"),
            log:
                f"results/log/simulate/{recipe}@.log",
            benchmark:
                f"results/benchmark/simulate/{recipe}@.tsv"
            group:
                "replicates"
            resources:
                mem_mb=plan.memory(COMPILING, 100),
                runtime=plan.minutes(30, 2),
            message:
                f"simulate replicates of {recipe}"
            shell:
                "swflow simulate {input} -o results/runs --plan results/simulations.json {params.options} "
                "2>&1 | tee {log}"


rule sweep:
    input:
        "results/workloads/{workload}.parquet",
    output:
        "results/sweeps/{workload}+{sweep}.parquet",
    wildcard_constraints:
        sweep=one_of(config["sweeps"]),
    params:
        command=plan.command("sweep"), # sweep; or adjust, which searches for a factor
        options=plan.options("sweep"),
        code=plan.code("sweep"),
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
    wildcard_constraints:
        study=one_of(config["studies"]),
    params:
        options=plan.options("whatif"),
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
        "swflow whatif {input} {params.options} --study {wildcards.study:q} "
        "-o {output.page} -o {output.table} -o {output.data} 2>&1 | tee {log}"


# Evaluate forecasts of the recorded waits.
rule forecast:
    input:
        "results/workloads/{workload}.parquet",
    output:
        table="results/forecasts/{study}/{workload}.csv",
        data="results/forecasts/{study}/{workload}.parquet",
    wildcard_constraints:
        study=one_of(config["studies"]),
    params:
        options=plan.options("forecast"),
        code=fingerprint("forecast"),
    log:
        "results/log/forecast/{study}/{workload}.log",
    benchmark:
        "results/benchmark/forecast/{study}/{workload}.tsv"
    resources:
        mem_mb=plan.memory(COMPILING, 200),
        runtime=plan.minutes(20, 10),
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
    params:
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
        "swflow bound {input} -o {output} 2>&1 | tee {log}"


rule why:
    input:
        workload="results/workloads/{workload}.parquet",
        runs="results/runs/{workload}",
    output:
        "results/wait_reasons/{workload}.parquet",
    params:
        code=fingerprint("why"),
    log:
        "results/log/why/{workload}.log",
    benchmark:
        "results/benchmark/why/{workload}.tsv"
    resources:
        mem_mb=plan.memory(400, 100),
        runtime=plan.minutes(5, 2),
    message:
        "why {wildcards.workload}"
    shell:
        "swflow why {input.workload} --run {input.runs} -o {output} 2>&1 | tee {log}"
