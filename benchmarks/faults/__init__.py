"""Injected faults: each module breaks one thing and reports the result."""
