"""Importers: accounting records of batch systems, grids and open data sets become logs."""
