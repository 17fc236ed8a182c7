"""`holdfast cost`: what was spent on what, and what resuming an idle session would cost."""

import time
from collections.abc import Iterator, Sequence

import click

from holdfast.cli import options
from holdfast.cli.output import ago, one_line, report, tokens
from holdfast.cli.target import open_target
from holdfast.log.entries import AnyEntry
from holdfast.log.own_spending import is_own
from holdfast.log.spending import Spent
from holdfast.reports.cost import Bill, CostItem, bill, spent_by_day
from holdfast.request.cache.advice import (
    FRAME_TOKENS,
    SUMMARY_TOKENS,
    Option,
    ResumeAdvice,
    cold_resume_advice,
)
from holdfast.request.cache.calls import CallReport, explain_calls, last_of_conversation
from holdfast.request.cache.cost_model import expect
from holdfast.request.lifetime import Lifetime, seconds_of
from holdfast.settings import ClearSettings, home, load_settings
from holdfast.stages.clear.candidates import Candidates, weight
from holdfast.stages.clear.placeholder import LONGEST_WEIGHT
from holdfast.stages.clear.snapshot import STAND_IN_WEIGHT
from holdfast.tools.describe import describing
from holdfast.view import View
from holdfast.view.gauge import replay

TOP_TURNS = 5
"""The most expensive turns are worth a look."""
SHOWN_DAYS = 7
"""A week of the ledger; --json has all of it."""
SAID_CHARS = 60
"""What the other columns leave of a line."""


@click.command(epilog="Example: holdfast cost newest")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> None:
    """Show what was spent on what, and what resuming would cost.

    TARGET is a session's id, `newest`, or a file. Costs by model and kind of token, by source
    (the conversation or a fork), the most expensive turns, the cost without a cache, and each
    day's total over all sessions. For an idle session whose cache has expired: the cost of
    sending everything, of clearing first and of compacting first.
    """
    opened = open_target(target)
    history = opened.view.history
    found, days = bill(history), spent_by_day(home() / "spent")
    calls = explain_calls(history)
    last = last_of_conversation(calls)
    since = max(last.at, last.renewed) if last else 0.0  # when its cache was last read or written
    idle_seconds = max(0.0, time.time() - since)
    advice = _advice(history, len(calls), last, idle_seconds) if last and since else None
    lines = list(bill_lines(opened.name, found, days))
    if advice and advice.is_cold:
        lines += _advice_lines(since, advice)
    report(
        as_json,
        {
            "target": opened.name,
            "bill": found,
            "usd": found.total.cost.total,
            "own_usd": found.own.cost.total,
            "own_share": found.own_share,
            "days": days,
            "idle_seconds": idle_seconds if since else None,
            "resume": advice,
            "cheapest": advice.cheapest if advice else None,
        },
        lines,
    )


def bill_lines(name: str, found: Bill, days: dict[str, Spent]) -> Iterator[str]:
    """Write a session's bill; `days` are the totals of all sessions, if they are to be shown."""
    total = found.total
    yield f"{name}: ${total.cost.total:.4f} for {total.calls:,} calls"
    if total.unpriced_calls:
        yield f"{total.unpriced_calls:,} calls of models without a price are not included"
    if total.unfinished_calls:
        yield f"{total.unfinished_calls:,} answers were recorded before they were complete: their output is a lower bound"
    if total.bare_usd > 0:
        saved = total.bare_usd - total.cost.total
        yield f"without a cache ${total.bare_usd:.4f}; the cache saved ${saved:.4f} ({saved / total.bare_usd:.0%})"
    if own_line := _own_line(found):
        yield own_line
    for model in found.models:
        yield f"\n{model.name}   {model.calls:,} calls   ${model.cost.total:.4f}"
        yield from _kinds(model)
    if len(found.sources) > 1:
        yield "\nby source"
        for source in found.sources:
            yield f"  {source.name:<24} {source.calls:>6,} calls  ${source.cost.total:>9.4f}"
    if found.turns:
        yield "\nmost expensive turns"
    for turn in sorted(found.turns, key=lambda turn: -turn.item.cost.total)[:TOP_TURNS]:
        said = one_line(turn.said, SAID_CHARS) or "(before the first message)"
        yield f"  {turn.number:>4}  ${turn.item.cost.total:>8.4f}  {turn.item.calls:>4} calls  {said}"
    if days:
        yield "\nall sessions, by day"
    for day, spent in list(days.items())[-SHOWN_DAYS:]:
        yield f"  {day}  ${spent.usd:>8.4f}  {tokens(spent.tokens):>8}  {spent.answers:,} answers"


def _own_line(found: Bill) -> str:
    """Write what the engine spent on itself, dearest layer first; '' if nothing."""
    own = [item for item in found.sources if is_own(item.name)]
    if not own:
        return ""
    layers = ", ".join(f"{item.name} ${item.cost.total:.4f}" for item in own)
    return (
        f"of that on the engine's own calls ${found.own.cost.total:.4f}"
        f" ({found.own_share:.1%}, {found.own.calls:,} calls): {layers}"
    )


def _kinds(item: CostItem) -> list[str]:
    kinds = (
        ("uncached", item.tokens.uncached, item.cost.uncached),
        ("read from the cache", item.tokens.read, item.cost.read),
        ("written for 5 minutes", item.tokens.write_5m, item.cost.write_5m),
        ("written for an hour", item.tokens.write_1h, item.cost.write_1h),
        ("output", item.tokens.output, item.cost.output),
    )
    return [f"  {name:<24} {tokens(n):>8}  ${usd:>9.4f}" for name, n, usd in kinds if n]


def _advice_lines(since: float, advice: ResumeAdvice) -> list[str]:
    def line(name: str, option: Option) -> str:
        return (
            f"  {name:<16} {tokens(option.prompt_tokens):>8}  ${option.now_usd:>8.4f} for the next call,"
            f" ${option.per_call_usd:.4f} for each after"
        )

    return [
        "",
        f"the last call was {ago(since)}: the cache is cold. Resuming:",
        line("send all", advice.send_all),
        line("clear first", advice.clear_first),
        line("compact first", advice.compact_first),
        f"  cheapest over the expected calls: {advice.cheapest.replace('_', ' ')}",
    ]


def _advice(
    history: Sequence[AnyEntry], calls: int, last: CallReport, idle_seconds: float
) -> ResumeAdvice | None:
    """Return None for a model without a known price."""
    view, gauge = replay(history)
    used, total = gauge.size_tokens(view.total), weight(view.total)
    scale = used / total if total > 0 else 1.0
    known = round(weight(view.frame.measure) * scale) if view.frame else FRAME_TOKENS
    frame = min(known, used)
    lifetime: Lifetime = "1h" if last.lifetime == "1h" else "5m"
    return cold_resume_advice(
        used,
        min(round(_freed_weight(view, load_settings().clear) * scale), used - frame),
        SUMMARY_TOKENS,
        view.model or last.model,
        idle_seconds,
        lifetime,
        frame_tokens=frame,
        lives_seconds=seconds_of(last.lifetime),
        forecast=expect(calls=calls, grown_tokens=used - frame, lifetime=lifetime),
    )


def _freed_weight(view: View, settings: ClearSettings) -> float:
    """Estimate what clearing would take out of a cold prompt."""
    smallest = max(settings.smallest_tokens, LONGEST_WEIGHT)
    candidates = Candidates(describing(settings.also), smallest=smallest)
    candidates.follow(view)
    batch = candidates.batch(settings.keep_results)
    return max(0.0, batch.weight - STAND_IN_WEIGHT * len(batch))
