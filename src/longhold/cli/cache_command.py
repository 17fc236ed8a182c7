"""`longhold cache`: cache reads of each call, causes of misses, and their cost."""

import time
from collections import defaultdict
from collections.abc import Iterator

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import open_target
from longhold.core.log.spending import MAIN
from longhold.core.messages.text import ago, dollars, percent, pluralize, tokens
from longhold.core.messages.usage import Tally
from longhold.insight.calls import (
    CallReport,
    expires_at,
    explain_calls,
    last_of_conversation,
    sum_calls,
    totals,
)
from longhold.insight.remedies import cause_of


@click.command(epilog="Example: longhold cache newest")
@options.target
@click.option("--calls", "is_all", is_flag=True, help="List every call, not only the cold ones.")
@options.as_json
def command(target: str, is_all: bool, as_json: bool) -> None:
    """Show how well the prompt cache was used, and why it broke.

    TARGET is a session's id or a file. The default is this project's newest session. The command
    prints the cost and causes of cold calls, each cold call, the cost with an ideal cache and
    without a cache, and when the cache expires. Forks are included.
    """
    opened = open_target(target)
    calls = explain_calls(opened.view.history)
    last = last_of_conversation(calls)
    left = expires_at(last) - time.time() if last else 0.0
    document = {
        "target": opened.name,
        "calls": [call.to_json() for call in calls],
        "total": totals(calls) | {"hit_share": sum_calls(calls).hit_share},
        "seconds_to_expiry": max(0.0, round(left, 1)),
    }
    report(as_json, document, _lines(opened.name, calls, is_all))


def _lines(name: str, calls: list[CallReport], is_all: bool) -> Iterator[str]:
    if not calls:
        yield f"{name}: no call has recorded usage."
        return
    total = sum_calls(calls)
    yield from _verdict(name, calls, total)
    listed = calls if is_all else [call for call in calls if call.cause]
    if listed:
        yield ""
        yield f"{'entry':>6} {'read':>8} {'written':>8} {'neither':>8} {'hit':>6} {'cost':>11}"
    for call in listed:
        yield from _call_lines(call)
    yield ""
    ideal, bare = dollars(sum(call.ideal_usd for call in calls)), dollars(total.bare_usd)
    yield f"{dollars(total.usd)}; with an ideal cache {ideal}, without one {bare}"
    if total.unpriced_calls:
        yield f"{pluralize(total.unpriced_calls, 'call')} of models without a known price: not included"
    if last := last_of_conversation(calls):
        yield _expiry(last)


def _verdict(name: str, calls: list[CallReport], total: Tally) -> Iterator[str]:
    prompt = total.prompt_tokens
    yield (
        f"{name}: {percent(total.cache_read_tokens, prompt)} of the prompts was read from the cache"
        f" ({pluralize(total.calls, 'call')}, {tokens(prompt)} tokens)"
    )
    found: defaultdict[str, list[float]] = defaultdict(list)
    for call in calls:
        if call.cause:
            found[cause_of(call.cause, is_expected=call.is_expected).words].append(
                max(0.0, call.tally.lost_usd)
            )
    if not found:
        yield "Nothing was lost. Every call read everything that the previous call had cached."
        return
    lost = sum(map(sum, found.values()))
    yield f"{dollars(lost)} of {dollars(total.usd)}, {percent(lost, total.usd)}, was lost to cold calls and breaks:"
    for words, usd in sorted(found.items(), key=lambda item: -sum(item[1])):
        yield f"  {dollars(sum(usd)):>11}  {pluralize(len(usd), 'time')}: {words}"


def _call_lines(call: CallReport) -> Iterator[str]:
    tally = call.tally
    usd = "unknown" if tally.unpriced_calls else dollars(tally.usd)
    fork = f"  fork: {call.source}" if call.source != MAIN else ""
    share = percent(tally.cache_read_tokens, tally.prompt_tokens)
    yield (
        f"{call.n:>6} {tokens(tally.cache_read_tokens):>8} {tokens(tally.cache_write_tokens):>8} "
        f"{tokens(tally.input_tokens):>8} {share:>6} {usd:>11}{fork}"
    )
    if call.cause:
        word = "expected" if call.is_expected else "cold" if call.is_cold else "broke"
        lost = f"{tokens(tally.lost_tokens)} tokens not read, {dollars(max(0.0, tally.lost_usd))}"
        yield f"       {word}: {lost}: {call.detail}"


def _expiry(last: CallReport) -> str:
    end, now = expires_at(last), time.time()
    if not last.at:
        return "the time of the last call is unknown"
    if end <= now:
        return f"the cache ({last.lifetime}) expired {ago(end, now)}"
    minutes, seconds = divmod(int(end - now), 60)
    return f"the cache ({last.lifetime}) lives for another {minutes}:{seconds:02d} minutes"
