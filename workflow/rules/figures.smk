# From the database to the figures of the studies: PNG, SVG, and JSON for the report. One job draws the figures of a study
# that show a log, or of several studies with few. It runs again if runs and sweeps that they show change, which Snakemake
# sees by the digests of runs.
for figures in FIGURES:

    rule:
        name:
            figures.rule
        input:
            figures.shown,
            plan=figures.plan,
            # Not rules.load.output.database, which would be ancient in the other rules, too.
            database=ancient("results/swflow.duckdb"),
        output:
            [report(file, caption="../report/figure.rst", **figure_labels(file)) for file in figures.png],
            figures.others,
        log:
            f"results/log/figures/{figures.group}.log",
        benchmark:
            f"results/benchmark/figures/{figures.group}.tsv"
        priority: 1  # the report waits for the figures
        conda:
            ENVIRONMENT
        resources:
            mem_mb=memory(plan.catalogue, 700, 0.1),
            runtime=minutes(plan.catalogue, 5, 0.02),
        params:
            group=figures.group,
            code=fingerprint("load", "figures"),
        message:
            "figures of {params.group}"
        shell:
            "swflow figures {input.plan} --database {input.database} -o results/figures 2>&1 | tee {log}"
