"""Readers and writers for other agents' session formats."""
