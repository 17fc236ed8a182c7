"""One module for each group of promises; each returns plain figures."""
