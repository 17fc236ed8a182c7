"""Agents beside the main one.

Definitions say what an agent is; the supervisor starts and stops agents; mail and tasks are files
that several processes may use at once; a worktree gives an agent files of its own.
"""
