"""Ways to adopt Longhold, each a program of its own, and many sessions in one process."""
