"""`longhold cost`: the cost of sessions."""

from collections.abc import Iterator

import click

from longhold.cli import options
from longhold.cli.output import describe_recorded, report
from longhold.cli.target import open_target
from longhold.core.log.spending import is_own
from longhold.core.messages.text import dollars, percent, pluralize, tokens
from longhold.core.messages.usage import Tally
from longhold.insight.cost import Bill, CostItem, bill


@click.command(epilog="Example: longhold cost newest")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> None:
    """Show spending by purpose.

    TARGET is a session's id or a file. The default is this project's newest session. The command
    prints costs by model and kind of token, costs by source (the conversation, sub-agents,
    summaries), and the cost without a cache. `longhold explain` shows the cost of each turn, and
    `longhold report` shows the cost of all sessions.
    """
    opened = open_target(target)
    found = bill(opened.view.history)
    document = {
        "target": opened.name,
        "bill": found.to_json(),
        "usd": found.total.tally.usd,
        "own_usd": found.own.tally.usd,
        "own_share": found.own_share,
        "unrecorded_usd": found.total.tally.unrecorded_usd,
    }
    report(as_json, document, bill_lines(opened.name, found))


def bill_lines(name: str, found: Bill) -> Iterator[str]:
    total = found.total.tally
    if not total.calls:
        yield f"{name}: no call has recorded usage"
        return
    recorded = describe_recorded(total)
    about = f"about {dollars(total.estimated_usd)}: {recorded}"
    yield f"{name}: {about if recorded else dollars(total.usd)}"
    yield pluralize(total.calls, "call")
    if total.unpriced_calls:
        calls = pluralize(total.unpriced_calls, "call")
        yield f"{calls} of models without a known price: not included"
    yield from filter(None, (_cache_line(total), _own_line(found)))
    for model in found.models:
        yield f"\n{model.name}   {pluralize(model.tally.calls, 'call')}   {dollars(model.tally.usd)}"
        yield from _kinds(model)
    if len(found.sources) > 1:
        yield "\nby source"
        for source in found.sources:
            spent, calls = source.tally, pluralize(source.tally.calls, "call")
            usd = f"{'~' if spent.unrecorded_usd else ''}{dollars(spent.estimated_usd)}"
            yield f"  {source.name:<24} {calls:>12} {usd:>11}"


def _cache_line(total: Tally) -> str:
    if total.bare_usd <= 0:
        return ""
    saved, bare = total.bare_usd - total.usd, dollars(total.bare_usd)
    if saved > 0:
        return (
            f"without a cache {bare}: it saved {dollars(saved)}, {percent(saved, total.bare_usd)}"
        )
    return f"without a cache {bare}: it cost {dollars(-saved)} more than it saved"


def _own_line(found: Bill) -> str:
    own = [item for item in found.sources if is_own(item.name) and item.tally.calls]
    if not own:
        return ""
    layers = ", ".join(f"{item.name} {dollars(item.tally.usd)}" for item in own)
    return (
        f"of that on overhead calls {dollars(found.own.tally.usd)}"
        f" ({found.own_share:.1%}, {pluralize(found.own.tally.calls, 'call')}): {layers}"
    )


def _kinds(item: CostItem) -> list[str]:
    used, cost = item.tally, item.cost
    kinds = (
        ("uncached", used.input_tokens, cost.uncached),
        ("read from the cache", used.cache_read_tokens, cost.read),
        ("written for 5 minutes", used.written_5m_tokens, cost.write_5m),
        ("written for an hour", used.written_1h_tokens, cost.write_1h),
        ("output", used.output_tokens, cost.output),
        ("web searches", 1 if cost.searches else 0, cost.searches),
    )
    lines = [f"  {name:<24} {tokens(n):>8}  {dollars(usd):>11}" for name, n, usd in kinds if n]
    if used.unrecorded_output:
        about = f"~{tokens(used.unrecorded_output)}"
        lines.append(f"  {'output not recorded':<24} {about:>8}")
    return lines
