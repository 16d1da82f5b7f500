"""The DuckDB database: schema, load and views."""
