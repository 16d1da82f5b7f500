"""swflow: evaluate parallel job schedulers on logs in the Standard Workload Format."""

__version__ = "0.1.0"
