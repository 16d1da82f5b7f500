"""Modules that several test files share."""
