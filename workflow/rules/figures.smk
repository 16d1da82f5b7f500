# From the database to the figures of the studies: PNG, SVG, and JSON for the report.
rule figure:
    input:
        plan.figure_summary("results/figures/{study}/{log}-{figure}.json"),
        plan.shown_files,
    output:
        report(
            "results/figures/{study}/{log}-{figure}.png",
            caption="../report/figure.rst",
            category="{study}",
            labels={"log": "{log}", "figure": "{figure}"},
        ),
        multiext("results/figures/{study}/{log}-{figure}", ".svg", ".json"),
    wildcard_constraints:
        study=one_of(config["studies"]),
        log=one_of({log for _, log, _ in plan.figures}),
        figure=one_of({kind for _, _, kind in plan.figures}),
    params:
        database=rules.load.params.database,
        kind="{figure}",
        options=plan.figure_options,
        key=plan.figure_key,
    log:
        "results/log/figure/{study}/{log}-{figure}.log",
    benchmark:
        "results/benchmark/figure/{study}/{log}-{figure}.tsv"
    resources:
        mem_mb=plan.memory(600, 0.1, database_mb),
        runtime=plan.minutes(3, 0.005, database_mb),
    message:
        "figure {wildcards.figure} of {wildcards.study}, {wildcards.log}"
    shell:
        "swflow figure {params.kind} --database {params.database} {params.options} --key {params.key} "
        "-o {output[0]} -o {output[1]} -o {output[2]} 2>&1 | tee {log}"


use rule figure as sweep_figure with:
    input:
        plan.figure_summary("results/figures/{study}/{workload}+{sweep}.json"),
        "results/sweeps/{workload}+{sweep}.parquet",
    output:
        report(
            "results/figures/{study}/{workload}+{sweep}.png",
            caption="../report/sweep.rst",
            category="{study}",
            labels={"log": "{workload}", "figure": "{sweep}"},
        ),
        multiext("results/figures/{study}/{workload}+{sweep}", ".svg", ".json"),
    wildcard_constraints:
        study=one_of(config["studies"]),
        sweep=one_of(config["sweeps"]),
    params:
        database=rules.load.params.database,
        kind="sweep",
        options=plan.figure_options,
        key=plan.figure_key,
    log:
        "results/log/figure/{study}/{workload}+{sweep}.log",
    benchmark:
        "results/benchmark/figure/{study}/{workload}+{sweep}.tsv"
    message:
        "figure {wildcards.workload}+{wildcards.sweep} of {wildcards.study}"
