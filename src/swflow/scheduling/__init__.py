"""Scheduling: the simulator and its kernels."""
