"""Analysis: compute metrics, load, correlations and statistics from the outcomes of jobs."""
