"""The part of a config that one call runs: some studies, or some logs."""

from swflow.errors import SwflowError, suggest
from swflow.studies.step_options import Config


def with_only(config: Config) -> Config:
    """
    Return a config with the studies and logs that its key ``only`` names; without this key, the config itself.

    Names of studies keep these studies, names of logs keep these logs in each of them, and studies that have none of
    these logs are left out. A name of both is that of the study.

    Raises
    ------
    SwflowError
        If a name is neither, or nothing is left.

    Examples
    --------
    >>> studies = {"order": {"logs": ["A", "B"]}, "sharing": {"logs": ["A"]}}
    >>> with_only({"only": "order", "studies": studies})["studies"]
    {'order': {'logs': ['A', 'B']}}
    >>> with_only({"only": ["B"], "studies": studies})["studies"]
    {'order': {'logs': ['B']}}
    """
    only = config.get("only")
    if only is None:
        return config
    names = [only] if isinstance(only, str) else only
    studies = config["studies"]
    logs = list(dict.fromkeys(log for content in studies.values() for log in content["logs"]))
    for name in names:
        if name not in studies and name not in logs:
            raise SwflowError(
                f"only: {name!r}: neither a study nor a log of one; expected one of "
                f"{', '.join([*studies, *logs])}{suggest(name, [*studies, *logs])}"
            )
    chosen = {name for name in names if name in studies} or set(studies)
    kept = {name for name in names if name not in studies} or set(logs)
    left = {
        study: {**content, "logs": [log for log in content["logs"] if log in kept]}
        for study, content in studies.items()
        if study in chosen and kept & set(content["logs"])
    }
    if not left:
        raise SwflowError(f"only: no study of {', '.join(names)} has one of these logs")
    return {**config, "studies": left}
