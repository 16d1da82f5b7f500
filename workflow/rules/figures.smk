# From the database to the figures of the studies: a picture, a drawing, and what the report shows.
def figure_files(*endings):
    """Return the files of all figures, in the order of the studies, and then those of the sweeps."""
    names = [f"{study}/{log}-{kind}" for study, log, kind in FIGURES if is_reached(log)]
    names += [
        f"{study}/{workload}+{sweep}"
        for (workload, sweep), plan in SWEEPS.items()
        for study in plan["studies"]
        if is_reached(workload)
    ]
    return [f"results/figures/{name}.{ending}" for name in names for ending in endings]


def figure_options(wildcards):
    """Return the options that draw a figure."""
    planned = FIGURES[wildcards.study, wildcards.log, wildcards.figure]
    return command_options({"run" if name == "runs" else name: value for name, value in planned.items()})


def shown_runs(wildcards):
    """Return the manifests of the runs that a figure shows: it is drawn again when one of these changes."""
    runs = FIGURES[wildcards.study, wildcards.log, wildcards.figure]["runs"]
    return sorted({runs_file(run.rpartition("/")[0]) for run in runs})


rule figure:
    input:
        ancient(str(SUMMARY)), # drawn from the database, but not again because other runs were loaded
        shown_runs,
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
        log=one_of({log for _, log, _ in FIGURES}),
        figure=one_of({kind for _, _, kind in FIGURES}),
    params:
        database=rules.load.params.database,
        outputs=lambda wildcards, output: command_options({"output": list(output)}),
        options=figure_options,
        code=fingerprint("figure"),
    log:
        "results/log/figure/{study}/{log}-{figure}.log",
    benchmark:
        "results/benchmark/figure/{study}/{log}-{figure}.tsv"
    resources:
        mem_mb=memory(600, 0.1, database_mb),
        runtime=minutes(3, 0.005, database_mb),
    message:
        "figure {wildcards.figure} of {wildcards.study}, {wildcards.log}"
    shell:
        "swflow figure {wildcards.figure} --database {params.database} {params.outputs} {params.options} 2>&1 | tee {log}"


rule sweep_figure:
    input:
        ancient(str(SUMMARY)),
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
        outputs=lambda wildcards, output: command_options({"output": list(output)}),
        code=fingerprint("figure"),
    log:
        "results/log/figure/{study}/{workload}+{sweep}.log",
    benchmark:
        "results/benchmark/figure/{study}/{workload}+{sweep}.tsv"
    resources:
        mem_mb=memory(600, 0.1, database_mb),
        runtime=minutes(3, 0.005, database_mb),
    message:
        "figure {wildcards.workload}+{wildcards.sweep} of {wildcards.study}"
    shell:
        "swflow figure sweep --log {wildcards.workload} --sweep {wildcards.sweep} --database {params.database} "
        "{params.outputs} 2>&1 | tee {log}"
