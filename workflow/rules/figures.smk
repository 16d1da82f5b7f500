# From the database to the figures of the studies: PNG, SVG, and JSON for the report. One job draws all figures of a log,
# since a process starts in the time of a figure; it keeps those that are up to date, which Snakemake must not delete.
for figures in plan.figures:

    rule:
        name:
            f"figures_{figures.log}"
        input:
            rules.load.output,
        output:
            [report(update(file), caption="../report/figure.rst", **figure_labels(file)) for file in figures.png],
            [update(file) for file in figures.others],
        params:
            log=figures.log,
            digest=figures.digest,
            code=fingerprint("load", "figures"),
        log:
            f"results/log/figures/{figures.log}.log",
        benchmark:
            f"results/benchmark/figures/{figures.log}.tsv"
        priority: 1 # the report waits for the figures
        resources:
            mem_mb=plan.memory(700, 0.1),
            runtime=plan.minutes(5, 0.02),
        message:
            "figures of {params.log}"
        shell:
            "swflow figures results/figures.json --log {params.log:q} --database results/swflow.duckdb "
            "-o results/figures 2>&1 | tee {log}"
