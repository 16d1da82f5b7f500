"""Charts as Vega-Lite specifications, of data that are counted and binned already."""
