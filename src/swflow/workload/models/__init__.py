"""Workload models, one module per published model."""
