"""`longhold replay`: what another policy would have cost on existing sessions."""

from collections.abc import Iterator, Mapping

import click

from longhold.cli import options
from longhold.cli.output import progress_bar, report
from longhold.cli.target import find_path
from longhold.core.messages.text import clean_text, dollars, percent, pluralize, tokens
from longhold.core.request.billing.tokens import is_estimated
from longhold.core.settings.installation import install_words
from longhold.errors import TranscriptError
from longhold.insight.replay.policies import select_policies
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
@click.argument("targets", nargs=-1, required=True, metavar="TARGETS...")
@click.option(
    "--policy",
    "names",
    multiple=True,
    help="Policy to replay, or `all`. The option may be repeated.",
)
@click.option(
    "--model",
    default="",
    help="Model whose prices and window apply. The default is the recorded model.",
)
@click.option(
    "--lifetime",
    type=click.Choice(["5m", "1h"]),
    help="Lifetime of the cache. The default is the recorded lifetime.",
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    help="Window in tokens. The default is the size that the sessions show.",
)
@options.as_json
def command(
    targets: tuple[str, ...],
    names: tuple[str, ...],
    model: str,
    lifetime: str | None,
    window: int | None,
    as_json: bool,
) -> None:
    """Show what another policy would have cost on sessions you already have.

    TARGETS are transcripts of Claude Code, Codex or pi, logs of Longhold, directories of them, or
    ids of sessions. The command replays each session call by call, with its recorded pauses and a
    simulated cache. Nothing is sent anywhere.
    """
    files = [find_path(target) for target in targets]
    found = find_sessions(files)
    if not found:
        raise TranscriptError(files[0], "contains no session; name a transcript or a directory")
    wanted = ReplayOptions(model=model, lifetime=lifetime or "", window_tokens=window or 0)
    policies = select_policies(names)
    label = f"Replaying {pluralize(len(found), 'session')} under {len(policies)} policies"
    size = sum(file.path.stat().st_size for file in found)
    with progress_bar(size, label, floor=0) as advance:
        paths = [file.path for file in found]
        done = replay_all(paths, policies, wanted, advance=advance or (lambda _: None))
    report(as_json, done.document(), _lines(done))


def rows(done: ReplayReport) -> Iterator[tuple[str, ...]]:
    yield (AS_RECORDED.replace("_", " "), *_cells(done.as_recorded), "")
    ours = standings(done.policies).get(OURS)
    for name, one in sorted(done.policies.items(), key=lambda pair: pair[1].usd):
        ahead = ", ".join(ours.list_losses(name)) if ours else ""
        yield (name.replace("_", " "), *_cells(one), ahead)


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
        for name, *cells in rows(done):
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
            f" {done.skipped_records:,} are of kinds that models do not see"
        )
    if is_estimated():
        yield f"token counts are estimates; for exact ones: {install_words('simulator')}"
    if (ratio := done.as_recorded.read_ratio) is not None:
        yield f"the simulator reads {percent(ratio, 1)} of the recorded cache reads"
    if best := sum(done.at_best.values()):
        yield f"at best {dollars(best)}: each new token sent once, and only needed tokens read"
    for name, stands in standings(done.policies).items():
        yield from _standing(name, stands, done.policies)


def _standing(
    name: str, stands: PolicyStanding, policies: Mapping[str, PolicyFigures]
) -> Iterator[str]:
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
        yield f"  {other.replace('_', ' ')} has an equally large context and a regret of {regret:,}"
