"""Steps that transform a workload, one module per kind."""
