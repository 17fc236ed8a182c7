"""Replays recorded sessions under other policies to measure the cost and regret of each."""
