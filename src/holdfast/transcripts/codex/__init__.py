"""Rollouts of the Codex command line, read and written."""

from holdfast.transcripts.codex.read import read, sniff
from holdfast.transcripts.codex.write import write

NAME = "codex"

__all__ = ["NAME", "read", "sniff", "write"]
