"""Other agents' session formats, read and written."""
