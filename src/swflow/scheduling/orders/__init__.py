"""Orders of the queue: formulas, Python functions and fair share."""
