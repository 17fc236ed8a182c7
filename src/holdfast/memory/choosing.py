"""A model's choice of what to recall: a question and a manifest go in, names come out.

A small call of its own, without the conversation: what was asked, a line for each memory, and
an answer of at most a few names. Names that are not in the manifest are dropped by `recall`,
and an answer that is no list is an error, for which words stand in.
"""

import json
from importlib.resources import files

from holdfast.errors import RequestRejected
from holdfast.log.entries import Framed, Section
from holdfast.memory.recall import Choose
from holdfast.turn.fork import AskFork, ForkRequest, Prefix

SOURCE = "recall"
ANSWER_TOKENS = 256
"""Five file names and the brackets around them."""
ASKED_CHARS = 4_000
"""A pasted log says no more in its second page about what it is about."""


def choose_with(ask: AskFork, model: str) -> Choose:
    """Let a model choose."""
    text = (files("holdfast.memory") / "prompts" / "choose.md").read_text(encoding="utf-8").strip()
    prefix = Prefix(
        frame=Framed(sections=(Section(name="choose", text=text),)),
        model=model,
        max_output_tokens=ANSWER_TOKENS,
        is_cached=False,
    )

    async def choose(asked: str, manifest: str) -> list[str]:
        say = f"Asked:\n{asked[:ASKED_CHARS]}\n\nMemories:\n{manifest}"
        reply = await ask(ForkRequest(say=say, source=SOURCE, prefix=prefix))
        return names_in(reply.text)

    return choose


def names_in(answer: str) -> list[str]:
    """Read the list of names in an answer."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        found = json.loads(answer[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise RequestRejected("the model named no memories in a list")
    return [name for name in found if isinstance(name, str)]
