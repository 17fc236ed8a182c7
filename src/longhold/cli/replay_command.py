"""`longhold replay`: what another policy would have cost on existing sessions."""

import importlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import progress_bar, report, say
from longhold.core.messages.text import clean_text, dollars, percent, pluralize, tokens
from longhold.errors import ConfigError, TranscriptError
from longhold.insight.replay.policies import POLICIES, select_policies
from longhold.insight.replay.result import Figures, PolicyFigures, PolicyStanding, standings
from longhold.insight.replay.run import AS_RECORDED, ReplayOptions, ReplayReport
from longhold.insight.replay.run import replay as replay_all
from longhold.insight.session_files import find_sessions

OURS = "ours"
HEADS = (
    *("cost", "own", "read", "written", "uncached", "moves", "over", "mean", "peak", "regret"),
    "beats ours by",
)
WIDTHS = (10, 8, 8, 8, 9, 7, 6, 8, 8, 14, 15)


@click.command(epilog="Example: longhold replay ~/.claude/projects/my-project --policy ours")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--policy", "names", multiple=True, help="Only this one; may be repeated; or all.")
@click.option("--model", default="", help="Whose prices and window; by default the recorded one's.")
@click.option("--lifetime", type=click.Choice(["5m", "1h"]), help="Of the cache; else as recorded.")
@click.option("--window", type=click.IntRange(min=1), help="Tokens; else what the sessions show.")
@click.option(
    "--executor",
    "executor",
    default="",
    metavar="NAME",
    help="Who computes: a Dask scheduler (tcp://…) or module:function; else processes here.",
)
@click.option(
    "--html", "page", type=click.Path(path_type=Path), help="Write a page of it to this file."
)
@options.as_json
def command(
    files: tuple[Path, ...],
    names: tuple[str, ...],
    model: str,
    lifetime: str | None,
    window: int | None,
    executor: str,
    page: Path | None,
    as_json: bool,
) -> None:
    """Show what another policy would have cost on sessions you already have.

    FILES are transcripts of Claude Code, Codex or pi, logs of Longhold, or directories of them. Each
    is played again call by call, at its own pace, with a simulated cache; nothing is sent anywhere.
    """
    found = find_sessions(files)
    if not found:
        raise TranscriptError(files[0], "holds no session; name a transcript or a directory")
    wanted = ReplayOptions(model=model, lifetime=lifetime or "", window_tokens=window or 0)
    policies = select_policies(names)
    label = f"Replaying {pluralize(len(found), 'session')} under {len(policies)} policies"
    size = sum(file.path.stat().st_size for file in found)
    with progress_bar(size, label, floor=0) as advance, named_executor(executor) as pool:
        done = replay_all(
            [file.path for file in found],
            policies,
            wanted,
            advance=advance or (lambda _: None),
            executor=pool,
        )
    if page:
        from longhold.cli.inspect_command import write_page  # needed only for a page
        from longhold.insight.pages.html import render_replay

        write_page(page, render_replay(list(_verdict(done)), HEADS, list(rows(done))).encode())
        say(f"{page} is the page of this replay; open it in a browser", err=True)
    report(as_json, done.document(), _lines(done))


@contextmanager
def named_executor(name: str) -> Iterator[Executor | None]:
    if not name:
        yield None
    elif "://" in name:
        try:
            distributed = importlib.import_module("distributed")
        except ImportError as error:
            raise ConfigError(f"--executor {name}: pip install distributed ({error})") from error
        with distributed.Client(name) as client, client.get_executor() as made:
            yield made
    else:
        module, _, function = name.partition(":")
        try:
            make = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"--executor {name}: {error}; give module:function or a scheduler's address"
            ) from error
        with make() as made:
            yield made


def rows(done: ReplayReport) -> Iterator[tuple[str, ...]]:
    yield (
        AS_RECORDED.replace("_", " "),
        "what the recorded usage says",
        *_cells(done.as_recorded),
        "",
    )
    ours = standings(done.policies).get(OURS)
    for name, one in sorted(done.policies.items(), key=lambda pair: pair[1].usd):
        ahead = ", ".join(ours.list_losses(name)) if ours else ""
        yield (name.replace("_", " "), POLICIES[name].label, *_cells(one), ahead)


def _cells(one: Figures) -> tuple[str, ...]:
    return (
        dollars(one.usd),
        dollars(one.own_usd) if isinstance(one, PolicyFigures) else "",
        tokens(one.tally.cache_read_tokens),
        tokens(one.tally.cache_write_tokens),
        tokens(one.tally.input_tokens),
        f"{one.prefix_moves:,}",
        f"{one.over_window_calls:,}",
        tokens(one.mean_context),
        tokens(one.peak_context),
        f"{one.regret:,} {dollars(one.regret_usd)}",
    )


def _lines(done: ReplayReport) -> Iterator[str]:
    if not done.sessions:
        yield "No session could be replayed."
    else:
        yield from _verdict(done)
        yield ""
        yield f"{'policy':<28}" + "".join(
            f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS, strict=True)
        )
        for name, _, *cells in rows(done):
            yield f"{name:<28}" + "".join(
                f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)
            )
    for name, problem in list(done.left_out.items())[:5]:
        yield f"left out: {clean_text(name)}: {clean_text(problem)}"
    if more := len(done.left_out) - 5:
        yield f"and {more:,} more; --json lists them" if more > 0 else ""


def _verdict(done: ReplayReport) -> Iterator[str]:
    yield (
        f"{pluralize(done.sessions, 'session')}, {pluralize(done.calls, 'call')},"
        f" {', '.join(map(clean_text, done.models))}, window {', '.join(map(tokens, done.windows))}"
    )
    if done.broken_records or done.skipped_records:
        yield (
            f"{pluralize(done.broken_records, 'record')} could not be read;"
            f" {done.skipped_records:,} are of kinds that no model sees"
        )
    if (ratio := done.as_recorded.read_ratio) is not None:
        yield f"the simulator reads {percent(ratio, 1)} of what was recorded as read from the cache"
    for name, stands in standings(done.policies).items():
        yield from _standing(name, stands, done.policies)


def _standing(
    name: str, stands: PolicyStanding, policies: Mapping[str, PolicyFigures]
) -> Iterator[str]:
    """Compare a Longhold policy with those that stay under the window."""
    ours = policies[name]
    among = (
        f", cheaper than {stands.fitting - len(stands.cheaper)} of {stands.fitting} others"
        " that stay under the window"
    )
    yield (
        f"{name.replace('_', ' ')}: {dollars(ours.usd)}{among if stands.fitting else ''},"
        f" with a regret of {ours.regret:,}"
    )
    for other in stands.cheaper:
        one = policies[other]
        yield (
            f"  {other.replace('_', ' ')} is cheaper by {dollars(ours.usd - one.usd)},"
            f" with a regret of {one.regret:,}"
        )
    for other in stands.less_regret:
        regret = policies[other].regret
        yield f"  {other.replace('_', ' ')} has as large a context and a regret of {regret:,}"
