# The workflow, where `snakemake` in this folder finds it first; it stands in workflow/, as other workflows do.
include: "workflow/Snakefile"


rule everything:
    default_target: True
    input:
        rules.all.input,
    message:
        "all results"
