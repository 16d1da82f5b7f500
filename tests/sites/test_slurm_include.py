"""Include lines of slurm.conf: files in its folder are read, and no others."""

import os

import pytest

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.sites import include
from swflow.sites.conf import read_slurm_conf

NODES, PARTITIONS = "NodeName=n[1-4] CPUs=16\n", "PartitionName=main Nodes=n[1-4]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "etc"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("Include nodes.conf", "nodes.conf"),
        ("include ./nodes.conf", "nodes.conf"),
        ("Include /etc/slurm/nodes.conf", "nodes.conf"),
        ("Include ../shared/nodes.conf", "nodes.conf"),
        ("Include conf.d/nodes.conf", "conf.d/nodes.conf"),
        ("Include conf.d/nodes.conf", "nodes.conf"),
        ("Include {folder}/conf.d/nodes.conf", "conf.d/nodes.conf"),
        ("ClusterName=hal\nInclude nodes-%c.conf", "nodes-hal.conf"),
        ("Include conf.d/*.conf", "conf.d/nodes.conf"),
        ("Include /etc/slurm/n*.conf", "nodes.conf"),
        ("Include n[1].conf", "n[1].conf"),
    ],
)
def test_files_in_the_folder_are_read(folder, line, file):
    (folder / "conf.d").mkdir()
    (folder / "slurm.conf").write_text(f"{line.format(folder=folder)}\n{PARTITIONS}")
    (folder / file).write_text(NODES)
    for path in ("slurm.conf", folder / "slurm.conf"):
        assert len(read_slurm_conf(path).nodes) == 4


SECRET = "root:secret:1\n"


@pytest.mark.parametrize(
    "line",
    [
        "Include /proc/self/environ", "Include /etc/passwd", "Include ../secret", "Include link", "Include .hidden",
        "Include .git/config", "Include pipe", "Include sub", "Include links/secret", "Include ..", "Include /",
        "Include *",
        "Include */config", "Include **/s*", "Include %c.conf", "Include n%h.conf", "Include x\x1b[31m",
        "Include ../*", "Include shadow\\*",
    ],
)  # fmt: skip
def test_other_files_are_not_read(folder, capfd, line):
    (folder.parent / "secret").write_text(NODES + SECRET)
    (folder / "link").symlink_to("../secret")
    (folder / "links").symlink_to("..")
    (folder / ".hidden").write_text(NODES + SECRET)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text(NODES + SECRET)
    (folder / "sub").mkdir()
    (folder / "sub/config").symlink_to("../.git/config")
    os.mkfifo(folder / "pipe")
    (folder / "slurm.conf").write_text(f"{line}\n{PARTITIONS}")
    assert call("import", "site", "slurm.conf", "-o", "site.yaml") == 1
    message = capfd.readouterr().err.splitlines()[-1]  # a slow machine prints the progress before
    assert message.startswith("swflow: slurm.conf:1: ") or "include each other" in message
    assert "secret" not in message.replace(line, "") and "\x1b" not in message
    assert not (folder / "site.yaml").exists()


def test_messages_do_not_show_other_files(folder):
    (folder / "slurm.conf").write_text("Include notes\n")
    (folder / "notes").write_text(SECRET)
    with pytest.raises(SwflowError, match="notes:1: invalid line; expected Option=Value") as caught:
        read_slurm_conf("slurm.conf")
    assert "secret" not in str(caught.value)
    (folder / "slurm.conf").write_text("what is this\n")
    with pytest.raises(SwflowError, match=r"slurm\.conf:1: 'what is this'; expected Option=Value"):
        read_slurm_conf("slurm.conf")


def test_number_depth_and_size_are_limited(folder, monkeypatch):
    for level in range(9):  # 20^9 includes
        (folder / f"{level}.conf").write_text(f"Include {level + 1}.conf\n" * 20)
    (folder / "9.conf").write_text("")
    with pytest.raises(SwflowError, match="more than 1,000 included files"):
        read_slurm_conf("0.conf")
    (folder / "a.conf").write_text("Include b.conf\n")
    (folder / "b.conf").write_text("Include a.conf\n")
    with pytest.raises(SwflowError, match="include each other more than 10 deep"):
        read_slurm_conf("a.conf")
    (folder / "b.conf").write_text("#" * 2**20)
    monkeypatch.setattr(include, "BYTES", 2**20 - 1)
    with pytest.raises(SwflowError, match="MiB in included files"):
        read_slurm_conf("a.conf")
