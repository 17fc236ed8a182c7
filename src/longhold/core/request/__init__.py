"""Render the view into identical bytes for each request, so that the prompt cache stays warm."""
