"""Ways to adopt Longhold, each as a separate program, and many sessions in one process."""
