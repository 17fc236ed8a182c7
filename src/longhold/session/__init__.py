"""The library: a session for programs that run their own loop."""
