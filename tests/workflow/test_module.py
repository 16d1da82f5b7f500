"""Test the workflow as a module of another Snakefile, in a folder outside of the clone, and Snakemake's own views."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import swflow
from swflow.files.query import query

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

#: What `snakedeploy deploy-workflow` writes, with a folder instead of a repository.
SNAKEFILE = """
configfile: "config/config.yaml"


module swflow:
    snakefile:
        "{workflow}"
    config:
        config


use rule * from swflow{names}


rule everything:
    default_target: True
    input:
        rules.{prefix}all.input,
        "best.txt",


onsuccess:
    swflow.onsuccess()


# A rule of the project that builds on the database.
rule best:
    input:
        rules.{prefix}load.output.database,
    output:
        "best.txt",
    shell:
        "swflow sql 'SELECT scheduler FROM metrics ORDER BY mean_wait_time LIMIT 1' --database {{input}} > {{output}}"
"""

CONFIG = {
    "logs": {"toy": {"generate": "lublin", "processors": 32, "jobs": 200}},
    "steps": {"drawn": {"kind": "moldable"}},
    "schedulers": {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}},
    "studies": {
        "mine": {
            "logs": ["toy"],
            "seeds": 2,
            "figures": ["bubbles"],
            "runs": [{"workloads": ["{log}", "{log}+drawn@{seed}"], "schedulers": ["fcfs", "easy"]}],
        }
    },
}


def snakemake(folder: Path, *arguments: str) -> str:
    """Run Snakemake in a folder, and return its output."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments], cwd=folder, text=True, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """Run a project whose Snakefile uses the workflow as a module with a prefix."""
    folder = tmp_path_factory.mktemp("deployed")
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(yaml.safe_dump(CONFIG))
    text = SNAKEFILE.format(workflow=ROOT / "workflow/Snakefile", names=" as swflow_*", prefix="swflow_")
    (folder / "Snakefile").write_text(text)
    snakemake(folder, "--cores", "2")
    return folder


def test_a_module_runs_in_a_folder_of_its_own(deployed):
    runs = query(deployed / "results/swflow.duckdb", "SELECT run FROM runs")[1]
    assert sorted(runs) == sorted(
        (f"toy{end}/{name}",) for end in ("", "+drawn@1", "+drawn@2") for name in ("easy", "fcfs")
    )
    assert "easy" in (deployed / "best.txt").read_text()
    assert (deployed / "results/report/studies/mine.html").is_file()
    assert (deployed / "results/figures/mine/toy-bubbles.png").is_file()
    assert "Nothing to be done" in snakemake(deployed, "--cores", "2")


def test_an_edited_module_simulates_its_runs_only(deployed):
    def numbers() -> dict[str, int]:
        found = (deployed / "results/runs").glob("*/*.parquet")
        return {f"{path.parent.name}/{path.stem}": path.stat().st_ino for path in found}

    before = numbers()
    config = CONFIG | {"schedulers": CONFIG["schedulers"] | {"fcfs": {"backfill": "none", "estimates": "kill"}}}
    (deployed / "config/config.yaml").write_text(yaml.safe_dump(config))
    said = snakemake(deployed, "--cores", "2")
    assert "changed: no value of a run and no verdict" in said and "report: results/report/index.html" in said
    after = numbers()
    (deployed / "config/config.yaml").write_text(yaml.safe_dump(CONFIG))
    assert {run for run in after if after[run] != before[run]} == {run for run in after if run.endswith("/fcfs")}
    snakemake(deployed, "--cores", "2")
    assert numbers() == before  # the store keeps the runs of both configs
    kept = len(list((deployed / "results/runs/.store").rglob("*.parquet")))
    said = snakemake(deployed, "--cores", "1", "swflow_prune")  # removes plans and runs of the former config
    assert "removed: results/plans/" in said and "removed: results/runs/" not in said
    assert kept - len(list((deployed / "results/runs/.store").rglob("*.parquet"))) == 3
    assert "Nothing to be done" in snakemake(deployed, "--cores", "2")


def test_a_module_without_a_prefix_plans_the_same_jobs(deployed):
    snakefile = deployed / "without-prefix"
    snakefile.write_text(SNAKEFILE.format(workflow=ROOT / "workflow/Snakefile", names="", prefix=""))
    assert "Nothing to be done" in snakemake(deployed, "-n", "--snakefile", snakefile.name)


def test_snakemake_sees_the_products(deployed):
    summary = snakemake(deployed, "--summary")
    rows = [line.split("\t") for line in summary.splitlines() if line.startswith("results/")]
    products = {row[0]: row[2] for row in rows}
    assert products["results/swflow.duckdb"] == "swflow_load"
    assert products["results/report/index.html"] == "swflow_report"
    assert {row[-2] for row in rows} == {"ok"}
    snakemake(deployed, "--report", "report.html")
    assert "toy-bubbles" in (deployed / "report.html").read_text()


def test_the_rules_pass_the_checks_of_snakemake():
    assert "Congratulations" in snakemake(ROOT, "--lint")


def test_an_environment_of_conda_gets_the_swflow_of_snakemake(tmp_path):
    """Snakemake creates the environment of `--sdm conda`, and runs the script in it; here a virtual one stands in."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    package = Path(swflow.__file__).parent
    variables = {"PATH": f"{environment}/bin:/usr/bin:/bin", "SWFLOW_PACKAGE": str(package)}
    subprocess.run(["bash", ROOT / "workflow/envs/swflow.post-deploy.sh"], env=variables, check=True)
    script = "import importlib.util; print(importlib.util.find_spec('swflow').origin)"
    found = subprocess.run([environment / "bin/python", "-c", script], capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).parent.samefile(package)
    assert os.access(environment / "bin/swflow", os.X_OK)
