"""Recorded sessions played again under other policies: what they would have cost and missed."""
