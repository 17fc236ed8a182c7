"""`holdfast explain`: turn by turn, what was done to the context and what it saved."""

import click

from holdfast.cli.show import json_out, plain, tokens
from holdfast.cli.target import open_target
from holdfast.reports.explain import Act, ExplainedTurn, explain

SAID_CHARS = 76
"""One line of what the user said is enough to know the turn by."""


@click.command(epilog="Example: holdfast explain newest")
@click.argument("target")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(target: str, as_json: bool) -> None:
    """Tell TARGET (a session's id, `newest`, or a file) turn by turn.

    For each turn: how many answers and tool calls, what they cost, how much came from the cache,
    and every act that changed what the model sees, with the tokens it saved.
    """
    opened = open_target(target)
    turns = explain(opened.history)
    if as_json:
        json_out(turns)
        return
    for number, turn in enumerate(turns, 1):
        click.echo("\n".join(map(plain, _lines(number, turn))))
    for damage in opened.damage:
        click.echo(f"damaged: line {damage.line} of the log ({damage.reason})", err=True)
    if opened.imported and opened.imported.malformed:
        count = len(opened.imported.malformed)
        click.echo(f"malformed: {count} lines of the file were left out", err=True)


def _lines(number: int, turn: ExplainedTurn) -> list[str]:
    said = " ".join(turn.said.split()) or "(before anything was said)"
    said = said if len(said) <= SAID_CHARS else said[: SAID_CHARS - 1] + "…"
    calls = ", ".join(f"{name} {count}" for name, count in turn.calls.most_common(4))
    prompt = turn.spent.tokens - turn.spent.output_tokens
    facts = [
        f"{turn.answers} answers",
        f"{turn.calls.total()} tool calls" + (f" ({calls})" if calls else ""),
        f"{tokens(turn.tokens_before)} → {tokens(turn.tokens_after)} tokens",
    ]
    if prompt:
        facts.append(f"{turn.spent.cache_read_tokens / prompt:.0%} from the cache")
    if turn.spent.usd:
        facts.append(f"${turn.spent.usd:.3f}")
    if turn.errors:
        facts.append(f"{turn.errors} errors")
    return [f"{number:>3}  {said}", f"     {' · '.join(facts)}", *map(_act, turn.acts)]


def _act(act: Act) -> str:
    saved = ""
    if act.saved_tokens:
        saved = f"  {'saved' if act.saved_tokens > 0 else 'added'} {tokens(abs(act.saved_tokens))}"
    return f"     [{act.n}] {act.kind}: {act.text}{saved}"
