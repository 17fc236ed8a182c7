"""How `holdfast compact` shows what it would do, or did."""

from collections.abc import Iterable, Iterator

from holdfast.cli.output import one_line, tokens
from holdfast.session.preview import Preview, Seam

MINUTE_SECONDS, HOUR_SECONDS = 60, 3_600
SAID_CHARS = 60
"""Of the message at a seam: enough to recognise it."""
TOOLS = 4
"""Listed by name; the total counts all."""


def seam_lines(seams: Iterable[Seam]) -> Iterator[str]:
    """Suggest parts that could be compacted by themselves."""
    for seam in seams:
        pause, said = _pause(seam.pause_seconds), one_line(seam.said, SAID_CHARS)
        yield f"seam     --up-to {seam.up_to} ({pause}{seam.covers} messages) before #{seam.start}: {said}"


def _pause(seconds: float) -> str:
    if seconds >= HOUR_SECONDS:
        return f"after {seconds / HOUR_SECONDS:.1f} h, "
    return f"after {seconds / MINUTE_SECONDS:.0f} min, " if seconds >= MINUTE_SECONDS else ""


def preview_lines(shown: Preview) -> Iterator[str]:
    share = 1 - shown.after_tokens / shown.before_tokens if shown.before_tokens else 0.0
    restored = f", {tokens(shown.restored_tokens)} of it restored" if shown.restored_tokens else ""
    yield f"covers   {shown.covered} messages, #{shown.first} to #{shown.last}; {shown.kept} stay word for word"
    yield (
        f"tokens   {tokens(shown.before_tokens)} → {tokens(shown.after_tokens)} "
        f"({share:.0%} less{restored})"
    )
    if shown.unseen_tokens:
        yield (
            f"unseen   {tokens(shown.unseen_tokens)} of both: system prompt and tools, which the "
            "provider counted and the history does not contain"
        )
    yield from _price_lines(shown)
    gone = shown.gone
    tools = ", ".join(f"{name} {count}" for name, count in list(gone.results.items())[:TOOLS])
    yield (
        f"gone     {gone.said} of your messages ({gone.verbatim} word for word in the summary), "
        f"{gone.answers} answers, {sum(gone.results.values())} tool calls"
        + (f": {tools}" if tools else "")
        + (f"; {gone.pictures} pictures" if gone.pictures else "")
        + (f"; {gone.thoughts} thoughts" if gone.thoughts else "")
    )
    yield f"survive  {shown.survived:.0%} of {shown.names} names in use lately"


def _price_lines(shown: Preview) -> Iterator[str]:
    price = shown.price
    if price is None:
        yield f"price    by {shown.by}; no price is published for the model"
        return
    yield f"price    {price.model}, by {shown.by}; a model's summary at most ${price.asking:.4f} per call"
    yield (
        f"         each later call reads ${price.call_before:.4f} → ${price.call_after:.4f}; "
        f"the first writes ${price.first_after:.4f}"
    )
