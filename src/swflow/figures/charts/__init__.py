"""Charts as Vega-Lite specifications, drawn from counted and binned data."""
