# Validates the config, includes the rules, and says what `all` is: the database, the figures and the report of all studies.
from snakemake.utils import min_version

min_version("9.0")

# The embedded default, unless another file is given with --configfile.
if not workflow.config_settings.configfiles:
    configfile: "config/config.yaml"

include: "workflow/rules/common.smk"
include: "workflow/rules/logs.smk"
include: "workflow/rules/workloads.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/database.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"

rule all:
    default_target: True
    input:
        "results/swflow.json",
        figure_files("png", "svg"),
        "results/report/index.html",
