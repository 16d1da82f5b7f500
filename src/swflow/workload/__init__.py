"""Workloads: cleaning, steps, models and replicates."""
