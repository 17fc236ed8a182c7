"""Integrations for other agents, such as Claude Code's status line and hooks and pi's extension."""
