"""Forecasts of the start of jobs, with intervals whose coverage is checked on past weeks."""
