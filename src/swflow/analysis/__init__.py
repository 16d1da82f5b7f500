"""Analysis: from the outcomes of jobs to metrics, load and correlations."""
