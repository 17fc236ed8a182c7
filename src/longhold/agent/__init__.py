"""The whole agent: `build` puts it together, `agent` runs it, `subagents` work for it."""
