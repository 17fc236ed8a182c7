"""`holdfast cost`: what was spent on what, and what going on with an idle session costs."""

import time

import click

from holdfast.cli.resume_cost import idle
from holdfast.cli.show import ago, json_out, tokens
from holdfast.cli.target import open_target
from holdfast.log.spending import Spent
from holdfast.reports.cost import Bill, CostItem, bill, spent_by_day
from holdfast.request.cache.advice import Option, ResumeAdvice
from holdfast.settings import home, load_settings

TOP_TURNS = 5
"""The dearest turns are the ones worth a look."""
SHOWN_DAYS = 7
"""A week of the ledger; --json has all of it."""
SAID_CHARS = 60
"""Enough of what the user said to know the turn by."""


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
    lying = idle(history, time.time(), load_settings().clear)
    advice = lying.advice if lying else None
    if as_json:
        json_out(
            {
                "target": opened.name,
                "bill": found,
                "usd": found.total.cost.total,
                "days": days,
                "idle_seconds": lying.seconds if lying else None,
                "resume": advice,
                "cheapest": advice.cheapest if advice else None,
            }
        )
        return
    click.echo("\n".join(_lines(opened.name, found, days)))
    if lying and advice and advice.is_cold:
        click.echo("\n".join(_advice_lines(lying.since, advice)))


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
    shown += ["", "dearest turns"] if dearest else []
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


def _kinds(item: CostItem) -> list[str]:
    """List what was spent on each kind of token that occurred."""
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
        f"the last call was {ago(since)}: the cache is cold. Going on:",
        line("send all", advice.send_all),
        line("clear first", advice.clear_first),
        line("compact first", advice.compact_first),
        f"  cheapest over the calls to expect: {word[advice.cheapest]}",
    ]
