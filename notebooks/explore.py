"""A notebook on a database of swflow: choose runs, ask in SQL, and look at the jobs of a region of the heatmap."""

import marimo

app = marimo.App(width="medium", app_title="swflow")

with app.setup:
    from pathlib import Path

    import altair
    import duckdb
    import marimo as mo
    import polars

    MEASURES = ("wait_time", "response_time", "slowdown")
    altair.data_transformers.disable_max_rows()

    def ask(connection: duckdb.DuckDBPyConnection, query: str, parameters: dict | None = None) -> polars.DataFrame:
        """Return what a query gives as a table."""
        result = connection.execute(query, parameters)
        columns = [column[0] for column in result.description]
        return polars.DataFrame(result.fetchall(), schema=columns, orient="row", infer_schema_length=None)

    def cells_of(connection: duckdb.DuckDBPyConnection, run: str, measure: str) -> polars.DataFrame:
        """Return the cells of a run's heatmap."""
        query = """SELECT load_low, load_high, value_low, value_high, jobs FROM heatmaps
            WHERE run = $run AND measure = $measure ORDER BY ALL"""
        return ask(connection, query, {"run": run, "measure": measure})

    def jobs_in(
        connection: duckdb.DuckDBPyConnection, run: str, measure: str, cells: polars.DataFrame
    ) -> polars.DataFrame:
        """Return the jobs of a run in the box around some cells, the longest waits first; none without cells."""
        if cells.is_empty():
            return ask(connection, "SELECT * FROM outcomes WHERE false")
        box = {
            "run": run,
            "left": cells["load_low"].min(),
            "right": cells["load_high"].max(),
            "low": cells["value_low"].min(),
            "high": cells["value_high"].max(),
        }
        value = f"greatest(o.{measure}, 1)"  # values below 1 are drawn at 1, loads above 1 at 1
        query = f"""SELECT o.job_id, user_id, o.processors, o.submit_time, o.run_time, o.wait_time, o.slowdown, o.load
            FROM outcomes o JOIN jobs USING (workload, job_id)
            WHERE run = $run AND least(load, 1) >= $left AND (least(load, 1) < $right OR $right >= 1)
                AND {value} >= $low AND {value} < $high
            ORDER BY o.wait_time DESC, o.job_id"""
        return ask(connection, query, box)

    def heatmap_of(cells: polars.DataFrame, measure: str) -> altair.Chart:
        """Return a heatmap on which a box can be drawn."""
        return (
            altair.Chart(cells, width=520, height=320)
            .mark_rect()
            .encode(
                altair.X("load_low:Q", title="load experienced", scale=altair.Scale(domain=[0, 1])),
                altair.X2("load_high"),
                altair.Y("value_low:Q", title=measure.replace("_", " "), scale=altair.Scale(type="log")),
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
    mo.stop(not Path(database.value).is_file(), mo.md(f"**{database.value}**: no such file; make it with snakemake."))
    connection = duckdb.connect(database.value, read_only=True)
    names = [run for (run,) in connection.execute("SELECT run FROM runs ORDER BY run").fetchall()]
    runs = mo.ui.multiselect(names, value=names[:2], label="runs", max_selections=2)
    measure = mo.ui.dropdown(MEASURES, value=MEASURES[0], label="measure")
    mo.hstack([runs, measure], justify="start")
    return connection, measure, runs


@app.cell
def _(connection, runs):
    metrics = ask(
        connection,
        """SELECT run, jobs, utilization, mean_wait_time, p95_wait_time, awrt FROM metrics
        WHERE list_contains($runs, run) ORDER BY list_position($runs, run)""",
        {"runs": runs.value},
    )
    mo.ui.table(metrics, selection=None)
    return (metrics,)


@app.cell
def _():
    query = mo.ui.code_editor(
        "SELECT scheduler, count(*) AS jobs, avg(wait_time) AS mean_wait\n"
        "FROM outcomes GROUP BY scheduler ORDER BY ALL",
        language="sql",
        label="one SQL query",
    )
    query
    return (query,)


@app.cell
def _(connection, query):
    try:
        answer = ask(connection, query.value)
        shown = mo.ui.table(answer, selection=None)
    except duckdb.Error as error:
        answer, shown = None, mo.md(f"`{str(error).splitlines()[0]}`")
    shown
    return (answer,)


@app.cell
def _(connection, measure, runs):
    heatmaps = mo.ui.array(
        [mo.ui.altair_chart(heatmap_of(cells_of(connection, run, measure.value), measure.value)) for run in runs.value]
    )
    mo.vstack([mo.vstack([mo.md(f"### {run}"), one]) for run, one in zip(runs.value, heatmaps, strict=True)])
    return (heatmaps,)


@app.cell
def _(connection, heatmaps, measure, runs):
    regions = {
        run: jobs_in(connection, run, measure.value, polars.DataFrame(cells))
        for run, cells in zip(runs.value, heatmaps.value, strict=True)
    }
    mo.vstack(
        [
            mo.vstack([mo.md(f"**{run}**: {jobs.height:,} jobs in the box"), mo.ui.table(jobs, selection=None)])
            for run, jobs in regions.items()
        ]
        if any(jobs.height for jobs in regions.values())
        else [mo.md("Drag a box over a heatmap: its jobs will stand here.")]
    )
    return (regions,)


if __name__ == "__main__":
    app.run()
