# From the database to the figures of the studies: PNG, SVG, and JSON for the report. One job draws all figures of a log,
# since a process starts in the time of a figure; it keeps those that are up to date, which Snakemake must not delete.
for log in plan.logs_with_figures:

    rule:
        name:
            f"figures_{log}"
        input:
            rules.load.output,
        output:
            [
                report(update(file), caption="../report/figure.rst", **plan.figure_labels(file))
                for file in plan.figures_of(log, "png")
            ],
            [update(file) for file in plan.figures_of(log, "svg", "json")],
        params:
            log=log,
            digest=plan.figures_digest(log),
            code=fingerprint("figures"),
        log:
            f"results/log/figures/{log}.log",
        benchmark:
            f"results/benchmark/figures/{log}.tsv"
        priority: 1 # the report waits for the figures
        resources:
            mem_mb=plan.memory(700, 0.1, database_mb),
            runtime=plan.minutes(5, 0.02, database_mb),
        message:
            "figures of {params.log}"
        shell:
            "swflow figures results/figures.json --log {params.log:q} --database results/swflow.duckdb "
            "-o results/figures 2>&1 | tee {log}"
