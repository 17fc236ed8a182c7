"""Chat completion lists: what one would send to OpenAI, or keeps of what was sent."""

from holdfast.transcripts.openai.read import read, sniff
from holdfast.transcripts.openai.write import losses, write

NAME = "openai"

__all__ = ["NAME", "losses", "read", "sniff", "write"]
