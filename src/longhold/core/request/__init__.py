"""Render a view into a request byte for byte, so that the provider's prompt cache stays warm."""
