"""`longhold explain`: changes of the context turn by turn, and their savings."""

from collections.abc import Iterator
from itertools import chain

import click
import msgspec

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import open_target
from longhold.core.memory.backlog import find_waiting
from longhold.core.messages.text import clean_line, dollars, percent, pluralize, tokens
from longhold.core.policy.decide import describe_rule
from longhold.core.settings import home
from longhold.insight.explain import Act, ExplainedTurn, explain


@click.command(epilog="Example: longhold explain newest")
@options.target
@options.as_json
def command(target: str, as_json: bool) -> None:
    """Show turn by turn what changed the context and what that saved.

    TARGET is a session's id or a file. The default is this project's newest session. For each turn
    the command prints the answers, tool calls, cost, share read from the cache, and every change to
    what the model sees, with the tokens that the change saved.
    """
    opened = open_target(target)
    turns = explain(opened.history)
    document = [msgspec.to_builtins(turn) | {"spent": turn.spent.to_json()} for turn in turns]
    lines = chain(
        (f"{opened.name}  ({opened.format})",),
        (line for turn in turns for line in _lines(turn)),
        (one.line for one in (find_waiting(home(), opened.name),) if one is not None),
        opened.problem_lines(),
    )
    report(as_json, document, lines)


def _lines(turn: ExplainedTurn) -> list[str]:
    said = clean_line(turn.said) or "(before the first message)"
    calls = ", ".join(f"{name} {count}" for name, count in turn.calls.most_common(4))
    facts = [
        pluralize(turn.answers, "answer"),
        pluralize(turn.calls.total(), "tool call") + (f" ({calls})" if calls else ""),
        f"{tokens(turn.tokens_before)} → {tokens(turn.tokens_after)} tokens",
    ]
    if turn.spent.prompt_tokens:
        facts.append(
            f"{percent(turn.spent.cache_read_tokens, turn.spent.prompt_tokens)} from the cache"
        )
    if turn.spent.usd:
        facts.append(dollars(turn.spent.usd))
    if turn.errors:
        facts.append(pluralize(turn.errors, "error"))
    acts = (line for act in turn.acts for line in _act(act))
    return [f"{turn.number:>3}  {said}", f"     {' · '.join(facts)}", *acts]


def _act(act: Act) -> Iterator[str]:
    saved = ""
    if act.saved_tokens:
        saved = f"  {'saved' if act.saved_tokens > 0 else 'added'} {tokens(abs(act.saved_tokens))}"
    times = f" ({act.times} times)" if act.times > 1 else ""
    yield f"     [{act.n}] {act.kind}{times}: {act.text}{saved}"
    if act.rule:
        yield f"         {describe_rule(act.rule)}"
        yield from (f"           not {one}" for one in act.lost)
