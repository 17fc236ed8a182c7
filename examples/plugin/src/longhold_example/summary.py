"""A summariser that needs no model: the first sentence of each message, the newest ones first kept."""

import re

from longhold.core.stages.compact.summary import Summariser, SummaryRequest

CHARS_PER_TOKEN = 3
_SENTENCE = re.compile(r".{1,200}?(?:[.!?](?=\s|$)|$)", re.S)


async def summarise(request: SummaryRequest) -> str:
    lines: list[str] = []
    left = request.max_tokens * CHARS_PER_TOKEN
    for message in reversed(request.messages):
        text = " ".join(block["text"] for block in message["content"] if block["type"] == "text")
        sentence = _SENTENCE.match(text.strip())
        line = f"- {message['role']}: {sentence[0] if sentence else '(no text)'}"
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def make_summariser() -> Summariser:
    """Called once for each session. A class whose objects can be called does as well."""
    return summarise
