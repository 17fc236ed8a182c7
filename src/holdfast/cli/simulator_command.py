"""`holdfast simulator`: a local API with a faithful prompt cache, for tests, demos and what-ifs."""

from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.output import report
from holdfast.cli.target import open_target
from holdfast.log.entries import Replied
from holdfast.messages import JsonObject, block_to_wire
from holdfast.models import open_model
from holdfast.simulator import Brain, SimulatorSettings, serve
from holdfast.simulator.brains.by_name import brain_by_name
from holdfast.simulator.brains.model import ModelBrain
from holdfast.simulator.brains.replay import ReplayBrain


@click.command(epilog="Example: holdfast simulator --port 8787 --brain digest")
@options.host(help="Anyone who can reach it can use it.")
@options.port(default=8787)
@click.option(
    "--brain",
    default="digest",
    show_default=True,
    help="What answers: digest, echo, scripted:PATH, replay:SESSION, or a model (local/smollm2).",
)
@options.as_json
def command(host: str, port: int, brain: str, as_json: bool) -> None:
    """Serve a local API with a faithful prompt cache.

    It speaks the Messages API, chat completions and the Responses API. Point any client at it:
    ANTHROPIC_BASE_URL=http://127.0.0.1:8787. GET /simulator/stats lists what each request read
    from the cache, wrote to it and cost.
    """

    def started(url: str) -> None:
        line = f"{url} answers with the {brain} brain; Ctrl-C stops it."
        report(as_json, {"url": url, "brain": brain}, [line])

    serve(host, port, _brain(brain), SimulatorSettings(), started=started)


def _brain(name: str) -> Brain:
    if name.startswith("scripted:"):
        script = Path(name.removeprefix("scripted:"))
        if not script.is_file():
            raise click.UsageError(f"no script {script}; check the path")
        return brain_by_name("scripted", script.read_text(encoding="utf-8"))
    if name.startswith("replay:"):
        return ReplayBrain(_answers(name.removeprefix("replay:")))
    if name in ("digest", "echo"):
        return brain_by_name(name)
    return ModelBrain(open_model(name))


def _answers(target: str) -> list[list[JsonObject]]:
    """Return every answer of a recorded session, its pieces joined."""
    pieces: dict[str, list[JsonObject]] = {}
    for entry in open_target(target).history:
        if isinstance(entry, Replied):
            pieces.setdefault(entry.response_id, []).extend(map(block_to_wire, entry.content))
    return list(pieces.values())
