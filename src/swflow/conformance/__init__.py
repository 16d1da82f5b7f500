"""Conformance of simulators: small cases that name the rule under test, and the judge that runs them."""
