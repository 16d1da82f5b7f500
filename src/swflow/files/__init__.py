"""Files: atomic writes, code fingerprints and queries."""
