"""`holdfast cost`: what was spent on what, and what going on with an idle session costs."""

import time
from dataclasses import dataclass

import click

from holdfast.cache.advice import (
    FRAME_TOKENS,
    SUMMARY_TOKENS,
    Option,
    ResumeAdvice,
    cold_resume_advice,
)
from holdfast.cache.bill import Bill, Item, bill, spent_by_day
from holdfast.cache.outlook import expect
from holdfast.cache.warmth import Lifetime
from holdfast.cli.show import ago, json_out, tokens
from holdfast.cli.target import open_target
from holdfast.entries import AnyEntry, Forked, Replied
from holdfast.gauge import replay
from holdfast.items import Round
from holdfast.settings import home
from holdfast.spending import Spent
from holdfast.tokens import Gauge
from holdfast.tools.describe import description_of
from holdfast.view import View

TOP_TURNS = 5
"""The dearest turns are the ones worth a look."""
SHOWN_DAYS = 7
"""A week of the ledger; --json has all of it."""
SAID_CHARS = 60
"""Enough of what the user said to know the turn by."""
KEPT_RESULTS = 5
"""The newest results are still worked with and would not be cleared."""


@click.command(epilog="Example: holdfast cost newest")
@click.argument("target")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(target: str, as_json: bool) -> None:
    """Show what TARGET (a session's id, `newest`, or a file) was spent on.

    By model and by kind: uncached, read from the cache, written to it, output; by who asked, the
    conversation or a fork of it; the dearest turns; what no cache would have cost; each day's
    total over all sessions. For a session that lay idle until its cache died: what sending all
    costs, clearing first, compacting first.
    """
    opened = open_target(target)
    history = opened.view.history
    found, days = bill(history), spent_by_day(home() / "spent")
    idle = _idle(history, time.time())
    advice = _advice(history, found, idle) if idle else None
    if as_json:
        json_out(
            {
                "target": opened.name,
                "bill": found,
                "usd": found.total.cost.total,
                "days": days,
                "idle_seconds": idle.seconds if idle else None,
                "resume": advice,
                "cheapest": advice.cheapest if advice else None,
            }
        )
        return
    click.echo("\n".join(_lines(opened.name, found, days)))
    if idle and advice and advice.is_cold:
        click.echo("\n".join(_advice_lines(idle, advice)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """The last answer and how long ago it came."""

    last: Replied | Forked
    seconds: float


def _idle(history: list[AnyEntry], now: float) -> _Idle | None:
    for entry in reversed(history):
        if isinstance(entry, Replied | Forked) and entry.usage and entry.at:
            return _Idle(last=entry, seconds=max(0.0, now - entry.at))
    return None


def _advice(history: list[AnyEntry], found: Bill, idle: _Idle) -> ResumeAdvice | None:
    view, gauge = replay(history)
    used = gauge.size_tokens(view.total)
    frame = min(FRAME_TOKENS, used)
    usage = idle.last.usage
    is_long = usage is not None and usage.cache_write_1h_tokens > 0
    lifetime: Lifetime = "1h" if is_long else "5m"
    return cold_resume_advice(
        used,
        min(_clearable_tokens(view, gauge), used - frame),
        SUMMARY_TOKENS,
        view.model or idle.last.model,
        idle.seconds,
        lifetime,
        frame_tokens=frame,
        outlook=expect(calls=found.total.calls, grown_tokens=used - frame, lifetime=lifetime),
    )


def _clearable_tokens(view: View, gauge: Gauge) -> int:
    """Weigh the older results of tools that are known; what is not known is never cleared."""
    results = [
        result
        for item in view.items
        if isinstance(item, Round)
        for use in item.tool_uses()
        if description_of(use.name).kind not in ("other", "ask")
        and (result := item.result_of(use.id)) is not None
        and result.stand_in("seen") is None
    ]
    older = results[:-KEPT_RESULTS]
    return round(sum(gauge.calibration.weigh(result.seen_measure) for result in older))


def _lines(name: str, found: Bill, days: dict[str, Spent]) -> list[str]:
    total = found.total
    shown = [f"{name}: ${total.cost.total:.4f} for {total.calls:,} calls"]
    if total.unpriced_calls:
        shown.append(f"{total.unpriced_calls:,} calls of models without a price are not in it")
    if total.unfinished_calls:
        shown.append(
            f"{total.unfinished_calls:,} answers were recorded before they were done: their output is a lower bound"
        )
    if total.bare_usd > 0:
        saved = total.bare_usd - total.cost.total
        shown.append(
            f"without a cache ${total.bare_usd:.4f}; the cache saved ${saved:.4f} ({saved / total.bare_usd:.0%})"
        )
    for model in found.models:
        shown += ["", f"{model.name}   {model.calls:,} calls   ${model.cost.total:.4f}"]
        shown += _kinds(model)
    if len(found.sources) > 1:
        shown += ["", "who asked"]
        for source in found.sources:
            shown.append(
                f"  {source.name:<24} {source.calls:>6,} calls  ${source.cost.total:>9.4f}"
            )
    dearest = sorted(found.turns, key=lambda turn: -turn.item.cost.total)[:TOP_TURNS]
    shown += ["", "dearest turns"]
    for turn in dearest:
        said = " ".join(turn.said.split()) or "(before anything was said)"
        said = said if len(said) <= SAID_CHARS else said[: SAID_CHARS - 1] + "…"
        shown.append(
            f"  {turn.number:>4}  ${turn.item.cost.total:>8.4f}  {turn.item.calls:>4} calls  {said}"
        )
    if days:
        shown += ["", "all sessions, by day"]
        for day, spent in list(days.items())[-SHOWN_DAYS:]:
            shown.append(
                f"  {day}  ${spent.usd:>8.4f}  {tokens(spent.tokens):>8}  {spent.answers:,} answers"
            )
    return shown


def _kinds(item: Item) -> list[str]:
    """List what was spent on each kind of token that occurred."""
    kinds = (
        ("uncached", item.tokens.uncached, item.cost.uncached),
        ("read from the cache", item.tokens.read, item.cost.read),
        ("written for 5 minutes", item.tokens.write_5m, item.cost.write_5m),
        ("written for an hour", item.tokens.write_1h, item.cost.write_1h),
        ("output", item.tokens.output, item.cost.output),
    )
    return [f"  {name:<24} {tokens(n):>8}  ${usd:>9.4f}" for name, n, usd in kinds if n]


def _advice_lines(idle: _Idle, advice: ResumeAdvice) -> list[str]:
    def line(name: str, option: Option) -> str:
        return (
            f"  {name:<16} {tokens(option.prompt_tokens):>8}  ${option.now_usd:>8.4f} for the next call,"
            f" ${option.per_call_usd:.4f} for each after"
        )

    word = {"send_all": "send all", "clear_first": "clear first", "compact_first": "compact first"}
    return [
        "",
        f"the last answer was {ago(idle.last.at)}: the cache is cold. Going on:",
        line("send all", advice.send_all),
        line("clear first", advice.clear_first),
        line("compact first", advice.compact_first),
        f"  cheapest over the calls to expect: {word[advice.cheapest]}",
    ]
