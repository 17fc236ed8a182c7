"""Integrations for other agents: Claude Code's status line and hooks, pi's extension."""
