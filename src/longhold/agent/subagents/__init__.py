"""Sub-agents: definitions, supervisor, mail, tasks and worktrees."""
