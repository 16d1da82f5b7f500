"""The version of swflow."""

__version__ = "0.1.0"
