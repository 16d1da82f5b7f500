"""Logs: the Standard Workload Format, the catalogue of logs, imports of accounting logs and exports."""
