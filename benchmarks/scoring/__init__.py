"""What the scorecard runs, and how its page is written."""
