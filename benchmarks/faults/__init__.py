"""Faults, injected one by one: each module breaks one thing and says what came of it."""
