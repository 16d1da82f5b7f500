"""Policies written in Python, to use and to learn from: ``policy: "swflow.policies:Easy"``."""

from swflow.policies.backfilling import Easy, Fcfs, Slack
from swflow.policies.fair_share import FairShare
from swflow.policies.learned import LearnedRunTimes

__all__ = ["Easy", "FairShare", "Fcfs", "LearnedRunTimes", "Slack"]
