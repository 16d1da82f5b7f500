"""Example policies written in Python, for use and as templates: ``policy: "swflow.policies:Easy"``."""

from swflow.policies.backfilling import Easy, Fcfs, Slack
from swflow.policies.fair_share import FairShare
from swflow.policies.learned import LearnedRunTimes

__all__ = ["Easy", "FairShare", "Fcfs", "LearnedRunTimes", "Slack"]
