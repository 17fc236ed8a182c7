"""Ways to adopt Holdfast, each a program of its own, and many sessions in one process."""
