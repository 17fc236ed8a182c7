"""Adapters for other frameworks. Only the module of an adapter imports its framework."""
