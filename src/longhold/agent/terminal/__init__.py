"""The terminal chat. The library does not import it."""
