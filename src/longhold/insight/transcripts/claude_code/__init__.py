"""Claude Code transcripts. These are JSONL files with several records per answer."""

from longhold.insight.transcripts.claude_code.agents import calls_beside
from longhold.insight.transcripts.claude_code.read import read, sniff
from longhold.insight.transcripts.claude_code.write import write

NAME = "claude-code"

__all__ = ["NAME", "calls_beside", "read", "sniff", "write"]
