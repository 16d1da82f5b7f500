"""A notebook on a database of swflow: choose runs, write SQL, and list the jobs of a region of the heatmap."""

import marimo

app = marimo.App(width="medium", app_title="swflow")

with app.setup:
    from pathlib import Path

    import altair
    import marimo as mo
    import polars

    import swflow
    from swflow.errors import SwflowError

    #: Measures with the titles of their axes.
    MEASURES = {"wait_time": "wait time (s)", "response_time": "response time (s)", "slowdown": "slowdown"}
    altair.data_transformers.disable_max_rows()

    def rounded(table: polars.DataFrame) -> polars.DataFrame:
        """Round fractions to four significant digits, and values above 1000 to whole numbers."""
        floats = polars.selectors.float()
        return table.with_columns(polars.when(floats.abs() >= 1000).then(floats.round()).otherwise(
            floats.round_sig_figs(4)).name.keep())  # fmt: skip

    def cells_of(database: str, run: str, measure: str) -> polars.DataFrame:
        """Return the cells of a run's heatmap."""
        query = """SELECT load_low, load_high, value_low, value_high, jobs FROM heatmaps
            WHERE run = $run AND measure = $measure ORDER BY ALL"""
        return swflow.query(query, database, {"run": run, "measure": measure})

    def jobs_in(database: str, run: str, measure: str, cells: polars.DataFrame) -> polars.DataFrame:
        """Return the jobs of a run in the box around some cells, the longest waits first; none without cells."""
        if cells.is_empty():
            return swflow.query("SELECT * FROM outcomes WHERE false", database)
        box = {
            "run": run,
            "left": cells["load_low"].min(),
            "right": cells["load_high"].max(),
            "low": cells["value_low"].min(),
            "high": cells["value_high"].max(),
        }
        value = f"greatest(o.{measure}, 1)"  # the heatmap draws values below 1 at 1, and loads above 1 at 1
        query = f"""SELECT o.job_id, user_id, o.processors, o.submit_time, o.run_time, o.wait_time, o.slowdown, o.load
            FROM outcomes o JOIN jobs USING (workload, job_id)
            WHERE run = $run AND least(load, 1) >= $left AND (least(load, 1) < $right OR $right >= 1)
                AND {value} >= $low AND {value} < $high
            ORDER BY o.wait_time DESC, o.job_id"""
        return swflow.query(query, database, box)

    def heatmap_of(cells: polars.DataFrame, measure: str) -> altair.Chart:
        """Return a heatmap on which a box can be drawn."""
        return (
            altair.Chart(cells, width=520, height=320)
            .mark_rect()
            .encode(
                altair.X(
                    "load_low:Q", title="load, share of the processors (0 to 1)", scale=altair.Scale(domain=[0, 1])
                ),
                altair.X2("load_high"),
                altair.Y("value_low:Q", title=MEASURES[measure], scale=altair.Scale(type="log")),
                altair.Y2("value_high"),
                altair.Color("jobs:Q", scale=altair.Scale(type="log", scheme="greys")),
                tooltip=["jobs", "load_low", "value_low", "value_high"],
            )
            .add_params(altair.selection_interval(name="region"))
        )


@app.cell
def _():
    database = mo.ui.text(mo.cli_args().get("database") or "results/swflow.duckdb", label="database", full_width=True)
    database
    return (database,)


@app.cell
def _(database):
    mo.stop(
        not Path(database.value).is_file(),
        mo.md(f"**{database.value}**: no such file; create it with `snakemake --cores all`."),
    )
    names = swflow.query("SELECT run FROM runs ORDER BY run", database.value)["run"].to_list()
    runs = mo.ui.multiselect(names, value=names[:2], label="runs", max_selections=2)
    measure = mo.ui.dropdown(list(MEASURES), value=next(iter(MEASURES)), label="measure")
    mo.hstack([runs, measure], justify="start")
    return measure, runs


@app.cell
def _(database, runs):
    metrics = swflow.query(
        """SELECT run, jobs, utilization, mean_wait_time AS mean_wait_s, p95_wait_time AS p95_wait_s, awrt AS awrt_s
        FROM metrics WHERE list_contains($runs, run) ORDER BY list_position($runs, run)""",
        database.value,
        {"runs": runs.value},
    )
    mo.ui.table(rounded(metrics), selection=None)
    return (metrics,)


@app.cell
def _():
    query = mo.ui.code_editor(
        "SELECT workload, scheduler, jobs, mean_wait_time / 3600 AS mean_wait_hours\n"
        "FROM metrics ORDER BY workload, mean_wait_hours",
        language="sql",
        label="one SQL query",
    )
    query
    return (query,)


@app.cell
def _(database, query):
    try:
        answer = rounded(swflow.query(query.value, database.value))
        shown = mo.ui.table(answer, selection=None)
    except SwflowError as error:
        answer, shown = None, mo.md(f"`{error}`")
    shown
    return (answer,)


@app.cell
def _(database, measure, runs):
    heatmaps = mo.ui.array(
        [
            mo.ui.altair_chart(heatmap_of(cells_of(database.value, run, measure.value), measure.value))
            for run in runs.value
        ]
    )
    mo.vstack([mo.vstack([mo.md(f"### {run}"), one]) for run, one in zip(runs.value, heatmaps, strict=True)])
    return (heatmaps,)


@app.cell
def _(database, heatmaps, measure, runs):
    regions = {
        run: jobs_in(database.value, run, measure.value, polars.DataFrame(cells))
        for run, cells in zip(runs.value, heatmaps.value, strict=True)
    }
    mo.vstack(
        [
            mo.vstack([mo.md(f"**{run}**: {jobs.height:,} jobs"), mo.ui.table(rounded(jobs), selection=None)])
            for run, jobs in regions.items()
        ]
        if any(jobs.height for jobs in regions.values())
        else [mo.md("Drag a box over a heatmap to list its jobs. Times are in seconds.")]
    )
    return (regions,)


if __name__ == "__main__":
    app.run()
