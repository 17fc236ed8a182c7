"""A session: what a program holds that has a loop of its own."""
