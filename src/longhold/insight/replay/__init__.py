"""Replays recorded sessions under other policies, for their cost and regret."""
