"""`holdfast cost`: what was spent on what, and what resuming an idle session would cost."""

import time

import click

from holdfast.cli import options
from holdfast.cli.output import ago, one_line, report, tokens
from holdfast.cli.resume_cost import idle
from holdfast.cli.target import open_target
from holdfast.log.spending import Spent
from holdfast.reports.cost import Bill, CostItem, bill, spent_by_day
from holdfast.request.cache.advice import Option, ResumeAdvice
from holdfast.settings import home, load_settings

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
    idle_time = idle(history, time.time(), load_settings().clear)
    advice = idle_time.advice if idle_time else None
    lines = _lines(opened.name, found, days)
    if idle_time and advice and advice.is_cold:
        lines += _advice_lines(idle_time.since, advice)
    report(
        as_json,
        {
            "target": opened.name,
            "bill": found,
            "usd": found.total.cost.total,
            "days": days,
            "idle_seconds": idle_time.seconds if idle_time else None,
            "resume": advice,
            "cheapest": advice.cheapest if advice else None,
        },
        lines,
    )


def _lines(name: str, found: Bill, days: dict[str, Spent]) -> list[str]:
    total = found.total
    shown = [f"{name}: ${total.cost.total:.4f} for {total.calls:,} calls"]
    if total.unpriced_calls:
        shown.append(f"{total.unpriced_calls:,} calls of models without a price are not included")
    if total.unfinished_calls:
        shown.append(
            f"{total.unfinished_calls:,} answers were recorded before they were complete: their output is a lower bound"
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
        shown += ["", "by source"]
        for source in found.sources:
            shown.append(
                f"  {source.name:<24} {source.calls:>6,} calls  ${source.cost.total:>9.4f}"
            )
    turns = sorted(found.turns, key=lambda turn: -turn.item.cost.total)[:TOP_TURNS]
    shown += ["", "most expensive turns"] if turns else []
    for turn in turns:
        said = one_line(turn.said, SAID_CHARS) or "(before the first message)"
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

    word = {"send_all": "send all", "clear_first": "clear first", "compact_first": "compact first"}
    return [
        "",
        f"the last call was {ago(since)}: the cache is cold. Resuming:",
        line("send all", advice.send_all),
        line("clear first", advice.clear_first),
        line("compact first", advice.compact_first),
        f"  cheapest over the expected calls: {word[advice.cheapest]}",
    ]
