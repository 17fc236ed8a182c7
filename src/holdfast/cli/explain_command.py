"""`holdfast explain`: turn by turn, what changed the context and what that saved."""

import click

from holdfast.cli import options
from holdfast.cli.output import one_line, report, say, tokens
from holdfast.cli.target import open_target
from holdfast.reports.explain import Act, ExplainedTurn, explain


@click.command(epilog="Example: holdfast explain newest")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> None:
    """Show turn by turn what changed the context and what that saved.

    TARGET is a session's id, `newest`, or a file. For each turn: answers, tool calls, cost, the
    share read from the cache, and every change to what the model sees with the tokens it saved.
    """
    opened = open_target(target)
    turns = explain(opened.history)
    report(as_json, turns, (line for n, turn in enumerate(turns, 1) for line in _lines(n, turn)))
    if not as_json:
        for line in opened.problem_lines():
            say(line, err=True)


def _lines(number: int, turn: ExplainedTurn) -> list[str]:
    said = one_line(turn.said) or "(before the first message)"
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
