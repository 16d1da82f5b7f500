"""Studies: plan runs, sweeps, what-if questions and projects, and compute statistical power."""
