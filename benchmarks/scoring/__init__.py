"""The commands of the scorecard, and its page."""
