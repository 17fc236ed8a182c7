"""`longhold cache`: what each call read from the prompt cache, why it broke, what that cost."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict

import click

from longhold.cli import options
from longhold.cli.output import report_all
from longhold.cli.target import CommandTarget, open_targets
from longhold.core.log.unique_answers import MAIN
from longhold.core.messages.text import ago, dollars, percent, pluralize, tokens
from longhold.insight.calls import (
    CallReport,
    Totals,
    expires_at,
    explain_calls,
    last_of_conversation,
    totals,
)
from longhold.insight.remedies import cause_of


@click.command(epilog="Example: longhold cache newest")
@options.targets
@click.option("--calls", "is_all", is_flag=True, help="List every call, not only the cold ones.")
@options.as_json
def command(targets: tuple[str, ...], is_all: bool, as_json: bool) -> None:
    """Show how well the prompt cache was used, and why it broke.

    TARGETS are session ids, files or directories; by default this project's newest session. First
    what cold calls cost and why they were cold, then each of them, then what an ideal cache and
    none would have cost, and when the cache expires. Forks are included.
    """
    report_all(as_json, (_describe(opened, is_all) for opened in open_targets(targets)))


def _describe(opened: CommandTarget, is_all: bool) -> tuple[object, Iterator[str]]:
    calls = explain_calls(opened.view.history)
    total, last = totals(calls), last_of_conversation(calls)
    left = expires_at(last) - time.time() if last else 0.0
    document = {
        "target": opened.name,
        "calls": [asdict(call) for call in calls],
        "total": asdict(total) | {"hit_share": total.hit_share},
        "seconds_to_expiry": max(0.0, round(left, 1)),
    }
    return document, _lines(opened.name, calls, total, is_all)


def _lines(name: str, calls: list[CallReport], total: Totals, is_all: bool) -> Iterator[str]:
    if not calls:
        yield f"{name}: no call here reports its usage."
        return
    yield from _verdict(name, calls, total)
    listed = calls if is_all else [call for call in calls if call.cause]
    if listed:
        yield ""
        yield f"{'entry':>6} {'read':>8} {'written':>8} {'neither':>8} {'hit':>6} {'cost':>11}"
    for call in listed:
        yield from _call_lines(call)
    yield ""
    ideal, bare = dollars(total.ideal_usd), dollars(total.bare_usd)
    yield f"{dollars(total.usd)}; with an ideal cache {ideal}, without one {bare}"
    if total.unpriced_calls:
        yield f"{pluralize(total.unpriced_calls, 'call')} of models without a known price: left out"
    if last := last_of_conversation(calls):
        yield _expiry(last)


def _verdict(name: str, calls: list[CallReport], total: Totals) -> Iterator[str]:
    prompt = total.read_tokens + total.written_tokens + total.uncached_tokens
    yield (
        f"{name}: {percent(total.read_tokens, prompt)} of the prompts was read from the cache"
        f" ({pluralize(total.calls, 'call')}, {tokens(prompt)} tokens)"
    )
    found: defaultdict[str, list[float]] = defaultdict(list)
    for call in calls:
        if call.cause:
            found[cause_of(call.cause).words].append(max(0.0, call.lost_usd))
    if not found:
        yield "Nothing was lost: every call read what the one before had cached."
        return
    lost = sum(map(sum, found.values()))
    yield f"{dollars(lost)} of {dollars(total.usd)}, {percent(lost, total.usd)}, was lost by cold calls and breaks:"
    for words, usd in sorted(found.items(), key=lambda item: -sum(item[1])):
        yield f"  {dollars(sum(usd)):>11}  {pluralize(len(usd), 'time')}: {words}"


def _call_lines(call: CallReport) -> Iterator[str]:
    usd = dollars(call.usd) if call.is_priced else "unknown"
    fork = f"  fork: {call.source}" if call.source != MAIN else ""
    prompt = call.read_tokens + call.written_tokens + call.uncached_tokens
    yield (
        f"{call.n:>6} {tokens(call.read_tokens):>8} {tokens(call.written_tokens):>8} "
        f"{tokens(call.uncached_tokens):>8} {percent(call.read_tokens, prompt):>6} {usd:>11}{fork}"
    )
    if call.cause:
        word = "expected" if call.is_expected else "cold" if call.is_cold else "broke"
        lost = f"{tokens(call.lost_tokens)} tokens not read, {dollars(max(0.0, call.lost_usd))}"
        yield f"       {word}: {lost}: {call.detail}"


def _expiry(last: CallReport) -> str:
    end, now = expires_at(last), time.time()
    if not last.at:
        return "the time of the last call is unknown"
    if end <= now:
        return f"the cache ({last.lifetime}) expired {ago(end, now)}"
    minutes, seconds = divmod(int(end - now), 60)
    return f"the cache ({last.lifetime}) lives for another {minutes}:{seconds:02d} minutes"
