"""Sessions of the pi coding agent, read and written."""

from holdfast.transcripts.pi.read import read, sniff
from holdfast.transcripts.pi.write import write

NAME = "pi"

__all__ = ["NAME", "read", "sniff", "write"]
