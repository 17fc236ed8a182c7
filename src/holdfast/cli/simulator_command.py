"""`holdfast simulator`: a local API with a faithful prompt cache, for tests, demos and what-ifs."""

from pathlib import Path

import click

from holdfast.cli.show import json_out
from holdfast.simulator import Brain, SimulatorSettings, serve


@click.command(epilog="Example: holdfast simulator --port 8787 --brain digest")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Stay on loopback: anyone who reaches it can use it.",
)
@click.option("--port", default=8787, show_default=True, help="0 picks a free one.")
@click.option(
    "--brain",
    default="digest",
    show_default=True,
    help="Who answers: digest, echo, scripted:PATH, or local/NAME.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def command(host: str, port: int, brain: str, as_json: bool) -> None:
    """Serve the Messages API and chat completions on this machine.

    Point any client at it: ANTHROPIC_BASE_URL=http://127.0.0.1:8787. GET /simulator/stats tells
    what each request read from the cache, wrote to it and cost.
    """

    def started(url: str) -> None:
        if as_json:
            json_out({"url": url, "brain": brain})
        else:
            click.echo(f"{url} answers with the {brain} brain; Ctrl-C ends it.")

    serve(host, port, _brain(brain), SimulatorSettings(), started=started)


def _brain(name: str) -> Brain:
    if name == "digest":
        from holdfast.simulator.brains.digest import DigestBrain

        return DigestBrain()
    if name == "echo":
        from holdfast.simulator.brains.echo import EchoBrain

        return EchoBrain()
    if name.startswith("scripted:"):
        from holdfast.simulator.brains.scripted import ScriptedBrain

        return ScriptedBrain(Path(name.removeprefix("scripted:")).read_text(encoding="utf-8"))
    raise click.UsageError(f"no brain {name!r}; there are digest, echo and scripted:PATH")
