"""Read files of Slurm's plugin jobcomp/filetxt: one line per job, for sites without an accounting database."""

import re
from collections.abc import Iterator, Sequence

import polars as pl

from swflow.errors import SwflowError
from swflow.log.importers.lines import values_of
from swflow.log.importers.records import Tally

#: The keys in the order of the file. Names and paths can contain any text, including spaces and other keys.
_KEYS = (
    "JobId", "ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset", "PackJobId", "PackJobOffset", "UserId", "GroupId",
    "Name", "JobState", "Partition", "TimeLimit", "StartTime", "EndTime", "NodeList", "NodeCnt", "ProcCnt", "WorkDir",
    "ReservationName", "Gres", "Tres", "Account", "QOS", "WcKey", "Cluster", "SubmitTime", "EligibleTime",
    "DerivedExitCode", "ExitCode",
)  # fmt: skip

_KEY = re.compile(rf"(?:^|\s)({'|'.join(_KEYS)})=")

#: The corresponding columns of sacct.
_COLUMNS = {
    "UserId": "user", "GroupId": "group", "Name": "jobname", "JobState": "state", "Partition": "partition",
    "TimeLimit": "timelimit", "StartTime": "start", "EndTime": "end", "NodeCnt": "allocnodes", "ProcCnt": "alloccpus",
    "Tres": "alloctres", "Gres": "reqgres", "ReservationName": "reservation", "EligibleTime": "eligible",
    "Account": "account", "QOS": "qos", "Cluster": "cluster", "SubmitTime": "submit",
}  # fmt: skip


def read_jobcomp(text: bytes, path: str, tally: Tally) -> pl.DataFrame:
    """Convert the content of a file of jobcomp/filetxt to ``line``, ``jobid`` and the columns of sacct, as text."""
    rows = []
    for number, record in _records(text.decode("utf-8", "replace")):
        values = _values(record)
        if not {"JobId", "StartTime", "EndTime", "JobState"} <= values.keys():
            tally.add("malformed line", 1, number, removed=True)
            continue
        row = {column: values.get(key, "") for key, column in _COLUMNS.items()}
        rows.append({"line": number, "jobid": _job_id(values), **row})
    if not rows:
        raise SwflowError(f"{path}: no valid record of jobcomp/filetxt; nothing to import")
    return pl.DataFrame(rows).with_columns(
        pl.col("user", "group").str.replace(r"\(\d+\)$", ""),
        submit=pl.col("submit").replace("", "Unknown"),
        reqcpus="alloccpus",
    )


def _records(text: str) -> Iterator[tuple[int, str]]:
    """Yield records with the numbers of their first lines; names can contain line breaks."""
    number = 1
    for record in re.split(r"\n(?=JobId=)", text):
        if record.strip():
            yield number, record
        number += record.count("\n") + 1


def _values(record: str) -> dict[str, str]:
    """
    Split a record at its keys, which are in order; other occurrences of keys belong to names and paths.

    The keys are the longest sequence in order. A name that contains keys precedes the keys of the file. Therefore, of
    equally long sequences, the last one is chosen.
    """
    longest: dict[int, tuple[re.Match[str], ...]] = {}
    for match in _KEY.finditer(record):
        place = _KEYS.index(match[1])
        before = max((found for key, found in longest.items() if key < place), key=_rank, default=())
        longest[place] = (*before, match)  # never shorter than the one that it replaces
    return values_of(record, max(longest.values(), key=_rank, default=()))


def _rank(found: Sequence[re.Match[str]]) -> tuple[int, int]:
    """Return the length of a sequence of keys, and the place of the last one."""
    return len(found), found[-1].start()


def _job_id(values: dict[str, str]) -> str:
    """Return a job's id in the notation of sacct."""
    if values.get("ArrayJobId") and values.get("ArrayTaskId"):
        return f"{values['ArrayJobId']}_{values['ArrayTaskId']}"
    for kind in ("HetJob", "PackJob"):  # the name until version 19.05
        if values.get(f"{kind}Id") and values.get(f"{kind}Offset"):
            return f"{values[f'{kind}Id']}+{values[f'{kind}Offset']}"
    return values["JobId"]
