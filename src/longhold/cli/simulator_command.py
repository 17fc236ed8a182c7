"""`longhold simulator`: a local API with a faithful prompt cache, for tests and demos."""

from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import open_target
from longhold.core.log.entries import Replied
from longhold.core.messages import JsonObject, block_to_wire
from longhold.core.models import open_model
from longhold.simulator import Brain, SimulatorSettings
from longhold.simulator.brains import EchoBrain, ModelBrain, ReplayBrain, ScriptedBrain
from longhold.simulator.brains.digest import DigestBrain


@click.command(epilog="Example: longhold simulator --port 8787 --brain digest")
@options.host(help="Anyone who can reach this address can use the simulator.")
@options.port(default=8787)
@click.option(
    "--brain",
    default="digest",
    show_default=True,
    help="Source of answers: digest, echo, scripted:PATH, replay:SESSION, or a model's name.",
)
@options.as_json
def command(host: str, port: int, brain: str, as_json: bool) -> None:
    """Serve a local API with a faithful prompt cache.

    The simulator implements the Messages API, chat completions and the Responses API. Point a
    client at it with ANTHROPIC_BASE_URL=http://127.0.0.1:8787. GET /simulator/stats lists what each
    request read from the cache, wrote to it and cost.
    """
    from longhold.simulator.server import serve  # needs an extra

    def announce(url: str) -> None:
        line = f"{url} answers with the {brain} brain; Ctrl-C stops it."
        report(as_json, {"url": url, "brain": brain}, [line])

    serve(host, port, _brain(brain), SimulatorSettings(), started=announce)


def _brain(name: str) -> Brain:
    if name.startswith("scripted:"):
        script = Path(name.removeprefix("scripted:"))
        if not script.is_file():
            raise click.UsageError(f"there is no script {script}; check the path")
        return ScriptedBrain(script.read_text(encoding="utf-8"))
    if name.startswith("replay:"):
        return ReplayBrain(_answers(name.removeprefix("replay:")))
    if name in ("digest", "echo"):
        return DigestBrain() if name == "digest" else EchoBrain()
    return ModelBrain(open_model(name))


def _answers(target: str) -> list[list[JsonObject]]:
    pieces: dict[str, list[JsonObject]] = {}
    for entry in open_target(target).history:
        if isinstance(entry, Replied):
            pieces.setdefault(entry.response_id, []).extend(map(block_to_wire, entry.content))
    return list(pieces.values())
