"""`holdfast cache`: per call what was read from the prompt cache, why it broke, what that cost."""

import time
from dataclasses import asdict

import click

from holdfast.cli.show import ago, json_out, tokens
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
@click.argument("target")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(target: str, as_json: bool) -> None:
    """Tell how TARGET (a session's id, `newest`, or a file) used the provider's prompt cache.

    For each call, those of forks included: tokens read, written and neither, its cost, and the
    share that was read; for each cold call and each break, the cause; then the total, beside what
    an ideal cache and no cache would have cost, and how long the cache still lives.
    """
    calls = explain_calls(open_target(target).view.history)
    total = totals(calls)
    if as_json:
        json_out(_document(calls, total))
        return
    if not calls:
        click.echo("No call here tells its usage.")
        return
    click.echo(f"{'entry':>6} {'read':>8} {'written':>8} {'neither':>8} {'hit':>5} {'cost':>9}")
    for call in calls:
        click.echo("\n".join(_lines(call)))
    click.echo("\n" + "\n".join(_summary(calls, total)))


def _document(calls: list[CallReport], total: Totals) -> dict[str, object]:
    last = last_of_conversation(calls)
    left = expires_at(last) - time.time() if last else 0.0
    return {
        "calls": [asdict(call) for call in calls],
        "total": asdict(total) | {"hit_share": total.hit_share},
        "seconds_to_expiry": max(0.0, round(left, 1)),
    }


def _lines(call: CallReport) -> list[str]:
    usd = f"${call.usd:.4f}" if call.is_priced else "unknown"
    shown = [
        f"{call.n:>6} {tokens(call.read_tokens):>8} {tokens(call.written_tokens):>8} "
        f"{tokens(call.uncached_tokens):>8} {call.hit_share:>5.0%} {usd:>9}"
        + (f"  fork: {call.source}" if call.source != MAIN else "")
    ]
    if call.cause:
        word = "expected" if call.is_expected else "cold" if call.is_cold else "broke"
        shown.append(
            f"       {word}: {call.cause}, {tokens(call.lost_tokens)} tokens not read, "
            f"${call.lost_usd:.4f}: {call.detail}"
        )
    return shown


def _summary(calls: list[CallReport], total: Totals) -> list[str]:
    shown = [
        f"calls {total.calls}, cold {total.cold_calls} · {tokens(total.read_tokens)} read, "
        f"{tokens(total.written_tokens)} written, {tokens(total.uncached_tokens)} neither · "
        f"{total.hit_share:.1%} from the cache",
        f"cost ${total.usd:.4f} · with an ideal cache ${total.ideal_usd:.4f} · "
        f"without one ${total.bare_usd:.4f}",
    ]
    if causes := _causes(calls):
        shown.append(f"breaks and cold calls ${total.lost_usd:.4f}: {causes}")
    if total.unpriced_calls:
        shown.append(f"calls of models without a known price, left out: {total.unpriced_calls}")
    shown += [_expiry(last)] if (last := last_of_conversation(calls)) else []
    return shown


def _causes(calls: list[CallReport]) -> str:
    """Sum up what each cause cost, the dearest first."""
    usd: dict[str, float] = {}
    for call in calls:
        if call.cause:
            usd[call.cause] = usd.get(call.cause, 0.0) + call.lost_usd
    counts = [call.cause for call in calls]
    ranked = sorted(usd, key=lambda cause: -usd[cause])
    return ", ".join(
        f"{cause} {counts.count(cause)} × ${usd[cause] / counts.count(cause):.4f}"
        for cause in ranked
    )


def _expiry(last: CallReport) -> str:
    end, now = expires_at(last), time.time()
    if not last.at:
        return "when the last call was made is not known"
    if end <= now:
        return f"the cache ({last.lifetime}) expired {ago(end, now)}"
    return f"the cache ({last.lifetime}) lives for another {end - now:.0f} seconds"
