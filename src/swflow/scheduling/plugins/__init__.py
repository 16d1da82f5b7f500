"""User-defined policies in Python: the protocol, their loader and examples."""
