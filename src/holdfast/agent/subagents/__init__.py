"""Agents beside the main one: what they are, how they write to each other, what they share.

Definitions say what an agent is; mail, teams and tasks are files that several processes may
use at once; a worktree gives an agent a place of its own. Starting agents is built on these.
"""
