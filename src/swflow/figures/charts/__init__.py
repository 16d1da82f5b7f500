"""
Charts as Vega-Lite specifications, drawn from counted and binned data.

Each ``…_chart`` function returns the specification as a dict, with ``title`` and ``caption`` under ``usermeta``. Its
parameter ``title`` is the figure's title, ``styles`` maps the names of runs or lines to their styles, and
``interactive`` adds tooltips.
"""
