"""`holdfast cache`: what each call read from the prompt cache, why it broke, what that cost."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from statistics import mean

import click

from holdfast.cli import options
from holdfast.cli.output import ago, report, tokens
from holdfast.cli.target import open_target
from holdfast.log.answers import MAIN
from holdfast.request.cache.calls import (
    CallReport,
    Totals,
    expires_at,
    explain_calls,
    last_of_conversation,
    totals,
)


@click.command(epilog="Example: holdfast cache newest")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> None:
    """Show how each call used the prompt cache, and why it broke.

    TARGET is a session's id, `newest`, or a file. For each call, forks included: tokens read,
    written and neither, the share read, the cost; for cold calls and breaks, the cause. Then the
    total, what an ideal cache and no cache would have cost, and when the cache expires.
    """
    calls = explain_calls(open_target(target).view.history)
    total, last = totals(calls), last_of_conversation(calls)
    left = expires_at(last) - time.time() if last else 0.0
    document = {
        "calls": [asdict(call) for call in calls],
        "total": asdict(total) | {"hit_share": total.hit_share},
        "seconds_to_expiry": max(0.0, round(left, 1)),
    }
    report(as_json, document, _lines(calls, total))


def _lines(calls: list[CallReport], total: Totals) -> Iterator[str]:
    if not calls:
        yield "No call here reports its usage."
        return
    yield f"{'entry':>6} {'read':>8} {'written':>8} {'neither':>8} {'hit':>5} {'cost':>9}"
    for call in calls:
        yield from _call_lines(call)
    yield ""
    yield from _summary(calls, total)


def _call_lines(call: CallReport) -> Iterator[str]:
    usd = f"${call.usd:.4f}" if call.is_priced else "unknown"
    fork = f"  fork: {call.source}" if call.source != MAIN else ""
    yield (
        f"{call.n:>6} {tokens(call.read_tokens):>8} {tokens(call.written_tokens):>8} "
        f"{tokens(call.uncached_tokens):>8} {call.hit_share:>5.0%} {usd:>9}{fork}"
    )
    if call.cause:
        word = "expected" if call.is_expected else "cold" if call.is_cold else "broke"
        yield (
            f"       {word}: {call.cause}, {tokens(call.lost_tokens)} tokens not read, "
            f"${call.lost_usd:.4f}: {call.detail}"
        )


def _summary(calls: list[CallReport], total: Totals) -> Iterator[str]:
    yield (
        f"calls {total.calls}, cold {total.cold_calls} · {tokens(total.read_tokens)} read, "
        f"{tokens(total.written_tokens)} written, {tokens(total.uncached_tokens)} neither · "
        f"{total.hit_share:.1%} from the cache"
    )
    yield (
        f"cost ${total.usd:.4f} · with an ideal cache ${total.ideal_usd:.4f} · "
        f"without one ${total.bare_usd:.4f}"
    )
    if causes := _causes(calls):
        yield f"breaks and cold calls ${total.lost_usd:.4f}: {causes}"
    if total.unpriced_calls:
        yield f"calls of models without a known price, left out: {total.unpriced_calls}"
    if last := last_of_conversation(calls):
        yield _expiry(last)


def _causes(calls: list[CallReport]) -> str:
    usd: defaultdict[str, list[float]] = defaultdict(list)
    for call in calls:
        if call.cause:
            usd[call.cause].append(call.lost_usd)
    ranked = sorted(usd.items(), key=lambda found: -sum(found[1]))
    return ", ".join(f"{cause} {len(lost)} × ${mean(lost):.4f}" for cause, lost in ranked)


def _expiry(last: CallReport) -> str:
    end, now = expires_at(last), time.time()
    if not last.at:
        return "the time of the last call is unknown"
    if end <= now:
        return f"the cache ({last.lifetime}) expired {ago(end, now)}"
    return f"the cache ({last.lifetime}) lives for another {end - now:.0f} seconds"
