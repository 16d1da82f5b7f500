# From the database and the figures to the report: a site, and tables for Snakemake's own report.
from shlex import quote

SETTINGS = {key: value for key, value in config.items() if key != "mirror"} # another mirror is no other config

TABLES = {
    "metrics": "SELECT * FROM metrics ORDER BY workload, scheduler",
    "reproduction": "SELECT * FROM reproduction",
    "replicates": "SELECT * FROM replicates ORDER BY ALL",
}


rule settings:
    output:
        "results/settings.json",
    params:
        content=lambda wildcards: canonical(SETTINGS), # as it is: {log} in it is no wildcard of a rule
    log:
        "results/log/settings.log",
    message:
        "settings: which runs are which study"
    shell:
        "printf '%s\\n' {params.content:q} > {output} 2> {log}"


rule report:
    input:
        rules.load.output,
        figures=lambda wildcards: figure_files("json"),
        settings=rules.settings.output,
    output:
        "results/report/index.html",
    params:
        database=rules.load.params.database,
        folder=lambda wildcards, output: str(Path(output[0]).parent),
        code=fingerprint("report"),
    log:
        "results/log/report.log",
    benchmark:
        "results/benchmark/report.tsv"
    resources:
        mem_mb=memory(700, 0.4, database_mb),
        runtime=minutes(5, 0.01, database_mb),
    message:
        "report {output}"
    shell:
        "swflow report {input.figures} --no-draw --studies {input.settings} --database {params.database} "
        "-o {params.folder} 2>&1 | tee {log}"


rule tables:
    input:
        rules.load.output,
    output:
        **{
            name: report(
                f"results/tables/{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"table": name},
            )
            for name in TABLES
        },
    params:
        queries=lambda wildcards, output: " && ".join(
            f"swflow sql {quote(query)} --csv {output[name]} --database {DATABASE}" for name, query in TABLES.items()
        ),
        code=fingerprint("sql"),
    log:
        "results/log/tables.log",
    benchmark:
        "results/benchmark/tables.tsv"
    resources:
        mem_mb=memory(500, 0.1, database_mb),
        runtime=minutes(2, 0.005, database_mb),
    message:
        "tables of Snakemake's report"
    shell:
        "({params.queries}) 2>&1 | tee {log}"
