"""The terminal chat, which the library does not import."""
