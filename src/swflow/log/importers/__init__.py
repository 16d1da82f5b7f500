"""Importers: convert accounting records of batch systems, grids and open data sets to logs."""
