"""Adapters for other frameworks, which are imported only in their own modules."""
