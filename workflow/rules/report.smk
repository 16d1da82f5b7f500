# From the database and the figures to the report.
rule report:
    input:
        rules.load.output,
        figures=lambda wildcards: figure_files("json"),
    output:
        "results/report/index.html",
    params:
        database=rules.load.params.database,
        folder=lambda wildcards, output: str(Path(output[0]).parent),
        code=fingerprint("report"),
    log:
        "results/log/report.log",
    message:
        "report {output}"
    shell:
        "swflow report {input.figures} --no-draw --database {params.database} -o {params.folder} 2>&1 | tee {log}"
