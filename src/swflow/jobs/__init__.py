"""Job tables, machines, conditions on jobs and random numbers."""
