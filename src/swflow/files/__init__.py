"""Files: atomic writes, manifests, code fingerprints and queries."""
