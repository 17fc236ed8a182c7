"""The agent: `build` assembles it, `agent` runs it, `subagents` work for it."""
