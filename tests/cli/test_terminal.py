"""Test the output of commands on a terminal: widths of tables, help panels, progress, and file formats."""

import fcntl
import gzip
import inspect
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import polars as pl
import pytest
import typer

from swflow.cli import application, main
from swflow.cli.panels import COMMANDS, OPTIONS, VALUES, completed_values, described
from swflow.cli.terminal import Watch, table_lines

SWFLOW = [sys.executable, "-c", "from swflow.cli import main; main()"]
HEADER = "; MaxProcs: 8\n; UnixStartTime: 0\n"
LINES = [f"{job} {job} 0 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1" for job in range(1, 2001)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a small log and a database with one of its runs."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "toy.swf.gz").write_bytes(gzip.compress((HEADER + "\n".join(LINES) + "\n").encode()))
    before = Path.cwd()
    os.chdir(folder)
    try:
        for arguments in (
            ["clean", "toy.swf.gz", "-o", "toy.parquet"],
            ["simulate", "toy.parquet", "--backfill", "easy", "-o", "easy.parquet"],
            ["simulate", "toy.parquet", "-o", "fcfs.parquet"],
            ["load", "easy.parquet", "fcfs.parquet", "--database", "results/swflow.duckdb"],
        ):
            assert call(*arguments) == 0
    finally:
        os.chdir(before)
    return folder


def call(*arguments) -> int:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code or 0


def all_commands() -> dict:
    """Return every command by its name; commands of a group have both words."""
    found = {}
    for name, command in typer.main.get_command(application()).commands.items():
        inner = getattr(command, "commands", None)
        found |= {f"{name} {sub}": one for sub, one in inner.items()} if inner else {name: command}
    return found


def on_a_terminal(folder, width, *arguments) -> str:
    """Run a command on a pseudo-terminal and return its output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm", "NO_COLOR": "1"}
    child = subprocess.Popen([*SWFLOW, *arguments], cwd=folder, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:
            break
        if not read:
            break
        shown += read
    assert child.wait() == 0, shown
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?!\n)", "\n", shown.decode().replace("\r\n", "\n"))


METRICS = {"run", "awrt", "penalized_percent", "p95_bounded_slowdown_60_unkilled", "gini_wait_time"}


def test_rows_of_450_columns_are_printed_vertically_without_losing_a_column(folder):
    shown = on_a_terminal(folder, 80, "sql", "SELECT * FROM metrics ORDER BY run")
    assert all(len(line) <= 80 for line in shown.splitlines())
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.strip()}
    assert rows.keys() >= METRICS
    assert rows["run"] == ["toy/easy", "toy/fcfs"] and rows["jobs"] == ["2,000", "2,000"]
    assert "left out" not in shown


def test_a_single_row_is_printed_vertically(folder):
    shown = on_a_terminal(folder, 80, "sql", "SELECT * FROM metrics WHERE run = 'toy/easy'")
    rows = {line.split()[0]: line.split()[-1] for line in shown.splitlines() if line.strip()}
    assert rows["run"] == "toy/easy"
    assert rows["jobs"] == "2,000"
    assert rows.keys() >= METRICS


def test_the_message_of_a_check_is_wrapped_not_omitted(folder):
    def words(text):
        return [word for word in text.split() if "─" not in word]

    whole = subprocess.run([*SWFLOW, "check", "toy.swf.gz"], cwd=folder, capture_output=True, text=True, check=True)
    assert max(map(len, whole.stdout.splitlines())) > 100
    shown = on_a_terminal(folder, 80, "check", "toy.swf.gz")
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert set(words(whole.stdout)) <= set(words(shown))


def test_COLUMNS_is_not_ignored_in_a_pipe(folder):
    environment = os.environ | {"COLUMNS": "60"}
    for arguments in (["check", "toy.swf.gz"], ["sql", "FROM metrics"]):
        done = subprocess.run(
            [*SWFLOW, *arguments], cwd=folder, capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout
        assert max(map(len, (done.stdout + done.stderr).splitlines())) <= 60


def test_output_to_a_pipe_has_every_column(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    assert call("sql", "SELECT * EXCLUDE (saturated) FROM metrics ORDER BY run") == 0
    lines = capfd.readouterr().out.splitlines()
    assert len({len(line.split()) for line in (lines[0], lines[2], lines[3])}) == 1
    assert lines[0].split()[-1] == "gini_wait_time"


@pytest.mark.parametrize("options", [["--csv"], ["--limit", "3000"]])
def test_a_closed_pipe_ends_quietly(folder, options):
    query = "SELECT * FROM outcomes CROSS JOIN range(20)"  # more than the buffer of a pipe
    child = subprocess.Popen(
        [*SWFLOW, "sql", query, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.readline()
    child.stdout.close()
    assert child.wait() != 0
    assert messages(child.stderr.read().decode()) == []
    child.stderr.close()


@pytest.mark.parametrize("width", range(8, 100, 7))
def test_tables_are_no_wider_than_the_terminal_and_show_every_value(width):
    columns, values = ["a", "long_name", "b"], ["x" * 30, "1", "y" * 12 + " and more words"]
    for rows in ([values], [values, values]):
        lines = table_lines(columns, rows, width)
        assert max(map(len, lines)) <= max(width, len("long_name") + 3 + 8 + 2)
        text = "".join("".join(lines).split())
        for value in (*columns, "1"):
            assert value in text
        assert text.count("x") == 30 * len(rows) and text.count("y") == 12 * len(rows)


def test_help_has_no_text_that_rich_shows_as_an_emoji():
    from rich.emoji import Emoji

    for name, command in all_commands().items():
        for text in (command.help, *(getattr(one, "help", "") for one in command.params)):
            assert Emoji.replace(text or "") == (text or ""), name


def test_every_command_and_every_option_of_simulate_has_its_panel():
    commands = {name.replace(" ", "_"): one for name, one in all_commands().items()}
    for name, panels in OPTIONS.items():
        options = {parameter.name: parameter for parameter in commands[name].params}
        for panel, names in panels.items():
            assert [options[option].rich_help_panel for option in names] == [panel] * len(names)
    shown = [parameter for parameter in commands["simulate"].params if not parameter.hidden]
    bare = [parameter.name for parameter in shown if not parameter.rich_help_panel]
    assert len(bare) <= 7


def test_every_command_and_every_option_is_described_by_a_sentence():
    for name, command in all_commands().items():
        assert command.help.strip().splitlines()[0].endswith("."), name
        for parameter in command.params:
            text = parameter.help or ""
            assert len(text.split()) > 1 and text.endswith((".", "…")), (name, parameter.name, text)


def test_a_docstring_describes_no_option_that_its_command_lacks():
    app = application()
    groups = [app, *(group.typer_instance for group in app.registered_groups)]
    functions = [command.callback for group in groups for command in group.registered_commands]
    assert len(functions) > 30
    for function in functions:
        assert described(function)[1].keys() <= inspect.signature(function).parameters.keys()


def messages(printed: str) -> list[str]:
    """Return the lines on standard error; on a slow machine, the names of long stages are between them."""
    return [line for line in printed.splitlines() if not line.endswith("…")]


def test_whatif_check_and_fidelity_have_their_own_panel():
    panels = {name: command.rich_help_panel for name, command in typer.main.get_command(application()).commands.items()}
    assert {panels[name] for name in ("whatif", "check", "fidelity", "power")} == {"Answer questions"}
    assert panels["reach"] == "Called by the workflow"
    assert {name for names in COMMANDS.values() for name in names} == panels.keys()


def test_a_deeply_nested_scheduler_is_refused_in_one_line(tmp_path):
    """A parser in C would end the process."""
    nested = "x={backfill: " + "[" * 50_000
    result = subprocess.run(
        [*SWFLOW, "simulate", "none.parquet", "--scheduler", nested], capture_output=True, text=True
    )
    assert result.returncode == 1 and len(messages(result.stderr)) == 1 and "too deeply nested" in result.stderr


def test_every_command_is_in_the_module_that_is_imported_for_it():
    modules = {name: module for names in COMMANDS.values() for name, module in names.items()}
    for name, command in all_commands().items():
        assert command.callback.__module__ == f"swflow.cli.{modules[name.split()[0]]}", name


@pytest.mark.parametrize("words", [[], ["generate"], ["import"]])
def test_a_command_without_arguments_prints_help_not_an_empty_error(words, capfd):
    assert call(*words) == 0
    out, err = capfd.readouterr()
    assert "Usage" in out and err == ""


def test_every_completed_value_belongs_to_a_parameter_and_exists():
    commands = {name.replace(" ", "_"): one for name, one in all_commands().items()}
    parameters = {f"{name}.{one.name}" for name, command in commands.items() for one in command.params}
    for key in VALUES:
        matching = [name for name in parameters if key in (name, name.partition(".")[2])]
        assert matching, key
        for name in matching:
            assert completed_values(*name.split("."))


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("simulate log.swf --backfill ", {"none", "easy", "conservative"}),
        ("simulate log.swf --order w", {"wfp3"}),
        ("simulate log.swf --allocation longest", {"longest-idle"}),
        ("figure load", {"load-curve"}),
        ("sql compar", {"comparisons"}),
        ("whatif log.swf --scheduler cons", {"conservative"}),
    ],
)
def test_the_shell_completes_values(words, values):
    position = words.count(" ") + 1
    environment = os.environ | {
        "_SWFLOW_COMPLETE": "complete_bash", "COMP_WORDS": f"swflow {words}", "COMP_CWORD": str(position)
    }  # fmt: skip
    shown = subprocess.run(SWFLOW, env=environment, capture_output=True, text=True, check=True).stdout
    assert values <= set(shown.split())
    assert len(values) > 1 or values == set(shown.split())


@pytest.mark.parametrize("text", ["mine: {order: sjf, backfill: easy}", 'mine={"order": "sjf", "backfill": "easy"}'])
@pytest.mark.parametrize("command", ["simulate", "whatif"])
def test_simulate_and_whatif_take_json_and_yaml(folder, monkeypatch, capfd, command, text):
    monkeypatch.chdir(folder)
    assert call(command, "toy.parquet", "--scheduler", "easy", "--scheduler", text) == 0
    assert "mine" in capfd.readouterr().out


def test_the_name_of_a_table_is_a_query(folder, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    assert call("sql", "metrics") == 0
    shown = capfd.readouterr().out
    assert call("sql", "FROM metrics") == 0
    assert capfd.readouterr().out == shown


def test_version_and_completion(capfd):
    assert call("--version") == 0
    assert capfd.readouterr().out.startswith("swflow ")
    environment = os.environ | {"_SWFLOW_COMPLETE": "complete_bash", "COMP_WORDS": "swflow sim", "COMP_CWORD": "1"}
    shown = subprocess.run(SWFLOW, env=environment, capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["simulate"]


def test_a_long_stage_is_named_once_where_there_is_no_terminal(capfd, monkeypatch):
    monkeypatch.setattr(Watch, "PATIENCE", {True: 0.01, False: 0.01})
    watch = Watch()
    watch.begin("fit the model")
    watch._timer.join()
    with watch.aside():
        print("a note", file=sys.stderr)
    assert watch._timer is None
    monkeypatch.setattr(Watch, "PATIENCE", {True: 3600.0, False: 3600.0})
    watch.begin("write")
    timer = watch._timer
    watch.end()
    timer.join()
    assert capfd.readouterr().err.splitlines() == ["fit the model …", "a note"]


def test_a_run_is_written_as_csv(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert call("simulate", "toy.parquet", "--backfill", "easy", "-o", "easy.csv") == 0
    written, run = pl.read_csv("easy.csv"), pl.read_parquet("easy.parquet")
    assert written.columns == run.columns
    assert written["start_time"].to_list() == run["start_time"].to_list()


#: The result of each command for -o x.csv: CSV, or an error that names the supported formats.
CSV = {
    "fetch KTH-SP2": "use .swf.gz",
    "clean toy.swf.gz": "use .parquet, .swf or .swf.gz",
    "generate lublin --jobs 10": "use .parquet, .swf or .swf.gz",
    "import gwf toy.swf.gz": ".parquet",
    "export toy.parquet": None,
    "select toy.parquet": "use .parquet, .swf or .swf.gz",
    "machine toy.parquet": "only .parquet",
    "memory toy.parquet": "only .parquet",
    "moldable toy.parquet": ".parquet",
    "model toy.parquet": "use .parquet, .swf or .swf.gz",
    "scale toy.parquet --processors 16": "use .parquet, .swf or .swf.gz",
    "adjust toy.parquet --processors 16 --tolerance 9 --seeds 1": None,
    "sweep toy.parquet --processors 16 --seeds 1": None,
    "simulate toy.parquet": None,
    "simulate toy.parquet --scheduler a={}": "folder",
    "intensify toy.parquet --factor 2": "use .parquet, .swf or .swf.gz",
    "replicate memory": "use .parquet",
    "reach KTH-SP2": "use .json",
    "whatif toy.parquet --scheduler easy": None,
    "bound toy.parquet": None,
    "why toy.parquet": None,
    "calibrate toy.parquet --config site.yaml": "use .yaml",
    "figure heatmap --log toy": "expected .png, .svg, .pdf, .json",
    "report": "folder",
}


@pytest.mark.parametrize("command", CSV)
def test_a_file_called_csv_is_csv_or_refused(folder, monkeypatch, capfd, command):
    monkeypatch.chdir(folder)
    (folder / "x.csv").unlink(missing_ok=True)
    status = call(*command.split(), "-o", "x.csv")
    if CSV[command] is None:
        assert status == 0
        assert pl.read_csv("x.csv").height > 0
    else:
        assert status == 1
        assert CSV[command] in capfd.readouterr().err.splitlines()[-1]
        assert not (folder / "x.csv").exists()


def test_every_command_with_output_is_tested_with_csv():
    commands = all_commands()
    writing = {name for name, one in commands.items() if any("-o" in option.opts for option in one.params)}
    asked = {name for name in commands for command in CSV if f"{command} ".startswith(f"{name} ")}
    asked |= {name for name in commands if name.startswith("import ")}  # one function writes the output of all of them
    # The first runs an external simulator, the second writes to a folder, the third needs a log of eight weeks.
    asked |= {"conformance", "figures", "forecast"}
    assert writing <= asked
