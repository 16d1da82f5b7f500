"""Tables of sacctmgr as versions and options print them: the same limits in each."""

import pytest

from swflow.errors import SwflowError
from swflow.log.recognise import recognize
from swflow.sites.slurm_site import read_site

CONF = """ClusterName=Hal
AccountingStorageEnforce=limits,qos
NodeName=n[1-4] CPUs=8
PartitionName=p Nodes=ALL
"""


@pytest.fixture
def limits(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)

    def read(**tables: str):
        for name, text in tables.items():
            (tmp_path / name).write_text(text)
        options = read_site(tmp_path / "slurm.conf", **{name: tmp_path / name for name in tables}).options
        return options.get("limits", {})

    return read


PLAIN = "Name|Priority|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU\nnormal|0|cpu=16|5|cpu=8|3\n"

#: Tables that state the same limits.
SAME = {
    "plain": PLAIN,
    "sacctmgr -p": PLAIN.replace("\n", "|\n"),
    "CRLF and a mark of the byte order": "\ufeff" + PLAIN.replace("\n", "\r\n"),
    "names of options": PLAIN.replace("MaxTRESPU|MaxJobsPU", "MaxTRESPerUser|MaxJobsPerUser"),
    "before version 16.05": PLAIN.replace("GrpTRES", "GrpCPUs").replace("MaxTRESPU", "MaxCPUsPU").replace("cpu=", ""),
    "more resources": PLAIN.replace("cpu=16", "cpu=16,energy=18446744073709551614,node=7"),
    "values that are none": PLAIN + "long|0|cpu=18446744073709551615|4294967295|cpu=4294967294|-1\n",
}


@pytest.mark.parametrize("form", SAME)
def test_limits_of_qos_in_every_form(limits, form):
    expected = {"normal": {"processors": 16, "jobs": 5, "user_processors": 8, "user_jobs": 3}}
    assert limits(qos=SAME[form]) == {"qos": expected}


@pytest.mark.parametrize("spelled", ["hal", "Hal"])
def test_associations_are_those_of_the_cluster(limits, spelled):
    rows = [
        "Cluster|Account|Par Name|User|Share|MaxJobs", f"{spelled}|root|||1|", f"{spelled}|phys|root||1|",
        f"{spelled}| phys||ada|1|2", "other|phys||ada|1|7", "other|phys||bob|1|7",
    ]  # fmt: skip
    assert limits(associations="\n".join(rows)) == {"user": {"ada": {"jobs": 2}}}
    with pytest.raises(SwflowError, match="associations of other, third; expected those of one cluster"):
        limits(associations="\n".join(rows).replace(spelled, "third"))
    alone = [row.replace(spelled, "third") for row in rows if "other" not in row]  # named otherwise in slurmdbd
    assert limits(associations="\n".join(alone)) == {"user": {"ada": {"jobs": 2}}}


@pytest.mark.parametrize("text", ["Include nodes.conf\n", "# head\ninclude /etc/slurm/%c/nodes*.conf\n"])
def test_a_file_of_includes_is_a_configuration(tmp_path, text):
    (tmp_path / "file").write_text(text)
    assert recognize(tmp_path / "file").key == "slurm.conf"
