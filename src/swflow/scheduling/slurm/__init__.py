"""Slurm: its event loop, its two schedulers, nodes, preemption, priorities, usage and limits."""
