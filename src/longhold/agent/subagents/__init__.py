"""Sub-agents: definitions, supervisor, mail, tasks and worktrees.

Mail and tasks are files that several processes may use concurrently.
"""
