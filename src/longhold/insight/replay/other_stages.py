"""Context policies of other libraries as stages, for comparison in a replay. Each policy has the
settings that its authors document. Summaries are written on a fork that reads the cached prefix,
which is the cheapest way.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import structs

from longhold.core.log.entries import Cleared, Compacted, Snipped
from longhold.core.messages import Text, message_to_wire, text_of
from longhold.core.messages.measure import measure_text
from longhold.core.stages.compact.plain_summary import summarise
from longhold.core.turn.engine import Engine, Stage
from longhold.core.turn.fork.asking import AskFork, ForkRequest
from longhold.core.view.items import Item, Result, Round, Spoken, render

LINE_SHARE = 0.8
"""The share of the window at which libraries free space. Their defaults are 0.8 to 0.9."""
KEPT_MESSAGES = 20
WINDOW_MESSAGES = 40
"""Twice the number that policies with summaries keep, because nothing else is kept."""
KEPT_RESULTS = 10
PROVIDER_LINE_TOKENS = 150_000
"""The default compaction threshold of the Messages API."""
SUMMARY_CHARS = 20_000
"""About 5,000 tokens, which is the billed size of a summary."""
ASKED = "Summarise the conversation so far, so that the work can go on from the summary alone."
GONE = "[cleared]"


def sliding_window(messages: int = WINDOW_MESSAGES) -> Stage:
    async def stage(engine: Engine) -> None:
        _drop(engine, _select_before(engine, messages))

    return stage


def mask_results(keep_rounds: int = KEPT_RESULTS) -> Stage:
    async def stage(engine: Engine) -> None:
        rounds = [item for item in engine.view.items if isinstance(item, Round) and item.results]
        _clear(engine, (result for one in rounds[:-keep_rounds] for result in one.results))

    return stage


def summarise_at_line(ask: AskFork, keep: int = KEPT_MESSAGES) -> Stage:
    async def stage(engine: Engine) -> None:
        if engine.fullness().used_tokens > _line(engine):
            await _summarise(engine, ask, _select_before(engine, keep), "model")

    return stage


def provider_compaction(ask: AskFork) -> Stage:
    """Let the provider replace everything with its summary, at its default threshold."""

    async def stage(engine: Engine) -> None:
        line = min(PROVIDER_LINE_TOKENS, _line(engine))
        if engine.fullness().used_tokens > line:
            await _summarise(engine, ask, list(engine.view.items), "provider")

    return stage


def _line(engine: Engine) -> int:
    return round(LINE_SHARE * engine.fullness().window.limit_tokens)


def _select_before(engine: Engine, messages: int) -> list[Item]:
    items = list(engine.view.items)
    count = 0
    while items and count < messages:
        last = items.pop()
        count += 2 if isinstance(last, Round) and last.results else 1
    return items


def _drop(engine: Engine, items: Iterable[Item]) -> None:
    if targets := tuple(item.id for item in items):
        engine.record(Snipped(targets=targets, why="dropped"))


def _clear(engine: Engine, results: Iterable[Result]) -> None:
    if ids := tuple(result.tool_use_id for result in results if result.cleared is None):
        measures = (measure_text(GONE),) * len(ids)
        engine.record(Cleared(ids=ids, texts=(GONE,) * len(ids), measures=measures, why="cleared"))


def _summary(items: list[Item]) -> str:
    earlier = [text_of(i.content) for i in items if isinstance(i, Spoken) and i.kind == "summary"]
    since = [i for i in items if isinstance(i, Round) or i.kind != "summary"]
    text = summarise([message_to_wire(message) for message in render(since)])
    half = SUMMARY_CHARS // 2
    return "\n\n".join((*(one[:half] for one in earlier), text))[:SUMMARY_CHARS]


async def _summarise(
    engine: Engine, ask: AskFork, items: list[Item], by: Literal["model", "provider"]
) -> None:
    if len(items) < 2:
        return
    reply = await ask(ForkRequest(source="compact", say=ASKED, is_wanted=True))
    text = _summary(items)
    entry = Compacted(
        first=items[0].order,
        last=items[-1].order,
        summary=(Text(text=text),),
        by=by,
        usage=reply.calls[-1] if reply.calls else None,
        measure=measure_text(text),
        why="summarised",
    )
    engine.record(structs.replace(entry, before_tokens=engine.fullness().used_tokens))
