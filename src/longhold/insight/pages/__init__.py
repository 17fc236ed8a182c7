"""Pages about sessions: one HTML file that opens offline, and the same served live on loopback.

`session_data` reads a history into tables, `html` puts them into a file, `app` serves and follows.
"""
