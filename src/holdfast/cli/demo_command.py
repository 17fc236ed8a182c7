"""`holdfast demo`: the main job, offline, shown on one screen.

A made-up session in another agent's format is imported, folded, measured and taken apart;
every figure on the screen is computed from that run.
"""

import tempfile
import time
from pathlib import Path

import click

from holdfast.cli.context_command import lines
from holdfast.cli.show import json_out, size, tokens
from holdfast.cli.target import Target
from holdfast.context import describe
from holdfast.entries import Compacted, Undone
from holdfast.gauge import replay
from holdfast.log import Header, Log, load, write_log
from holdfast.rules import violations
from holdfast.transcripts.formats import open_transcript
from holdfast.transcripts.generate import write
from holdfast.view import fold
from holdfast.window import window_for


@click.command(epilog="Example: holdfast demo --seed 3")
@click.option("--seed", default=7, show_default=True, help="Which session to make up.")
@click.option("--records", default=500, show_default=True, help="How long it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(seed: int, records: int, as_json: bool) -> None:
    """Import a made-up session, show its view, its size and what each part weighs."""
    with tempfile.TemporaryDirectory() as directory:
        report = _run(Path(directory), seed, records)
    if as_json:
        json_out({key: value for key, value in report.items() if key != "picture"})
        return
    click.echo("\n".join(_screen(report)))


def _run(directory: Path, seed: int, records: int) -> dict[str, object]:
    transcript, path = directory / "made-up.jsonl", directory / "session.jsonl"
    transcript_bytes = write(transcript, seed, records, compactions=1)
    start = time.perf_counter()
    with open_transcript(transcript) as opened:
        entries = write_log(path, Header(session="made-up"), opened.entries)
    import_ms = (time.perf_counter() - start) * 1_000
    start = time.perf_counter()
    view = fold(load(path).entries)
    load_ms = (time.perf_counter() - start) * 1_000
    view, gauge = replay(view.history)
    context = describe(view, gauge, window_for(view.model))
    target = Target(name="made-up", format=opened.format, view=view)
    return {
        "records": opened.account.records,
        "transcript_bytes": transcript_bytes,
        "entries": entries,
        "log_bytes": path.stat().st_size,
        "import_ms": round(import_ms, 1),
        "load_ms": round(load_ms, 1),
        "messages": len(view.messages()),
        "violations": violations(view.messages()),
        "used_tokens": context.used_tokens,
        "undo": _undo(path),
        "picture": lines(target, context),
    }


def _undo(path: Path) -> dict[str, int]:
    """Take the session's compaction back and say what that brings back."""
    with Log.open(path) as log:
        view = fold(log.entries)
        before = len(view.messages())
        last = [entry for entry in log.entries if isinstance(entry, Compacted)][-1]
        view.apply(log.append(Undone(target=last.n)))
        return {
            "compaction": last.n,
            "messages_before": before,
            "messages_after": len(view.messages()),
        }


def _screen(report: dict[str, object]) -> list[str]:
    undo = report["undo"]
    picture = report["picture"]
    assert isinstance(undo, dict) and isinstance(picture, list)
    verdict = "every rule of the API holds" if not report["violations"] else "RULES ARE BROKEN"
    return [
        f"1. A session was made up: {report['records']:,} records, {size(float(str(report['transcript_bytes'])))}.",
        f"2. It was imported into a log: {report['entries']:,} entries, {size(float(str(report['log_bytes'])))}, in {report['import_ms']} ms.",
        f"3. The log was loaded and folded into a view in {report['load_ms']} ms: {report['messages']} messages, {verdict}.",
        f"4. What fills the window ({tokens(float(str(report['used_tokens'])))} tokens):",
        "",
        *(f"   {line}" for line in picture),
        "",
        f"5. Its compaction (entry {undo['compaction']}) was undone: {undo['messages_before']} messages became {undo['messages_after']}. Nothing had been lost.",
    ]
