"""Workloads: one module per step kind, each with one public function from a workload to a workload."""
