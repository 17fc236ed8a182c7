"""`longhold model`: list models, install local ones, test one."""

import asyncio
import sys
import time
from collections.abc import Iterator

import click

from longhold.cli import options
from longhold.cli.output import report, rewrite_line
from longhold.core.messages import JsonObject, text_of
from longhold.core.messages.text import human_size, tokens
from longhold.core.models import Reply, Request, open_model
from longhold.core.models.capabilities import Capabilities, capabilities, known_models
from longhold.core.models.local import CATALOG, InstallProgress, install, installed_path
from longhold.core.models.prices import prices
from longhold.core.models.protocol import Finished, TextDelta
from longhold.core.models.retry import stream_with_retries

QUESTION = "Answer with one short sentence: what is a longhold?"


@click.group(epilog="Example: longhold model test claude-haiku-5-5")
def command() -> None:
    """List models, install local ones, test one.

    Each command prints JSON with --json.
    """


@command.command("list", epilog="Example: longhold model list --json")
@options.as_json
def list_models(as_json: bool) -> None:
    """List known models, their windows, outputs and prices."""
    hosted = [_fields(capabilities(name)) for name in known_models()]
    local: list[JsonObject] = [
        {
            "model": f"local/{name}",
            "what": found.model,
            "bytes": found.size_bytes,
            "installed": str(installed_path(name) or ""),
        }
        for name, found in CATALOG.items()
    ]
    report(as_json, {"hosted": hosted, "local": local}, _lines(hosted, local))


def _lines(hosted: list[JsonObject], local: list[JsonObject]) -> Iterator[str]:
    yield f"{'model':<26} {'window':>8} {'output':>8}   $ per million: in, read, out"
    for found in hosted:
        prices = found["usd_per_million"]
        cost = " · ".join(f"{usd:g}" for usd in prices.values()) if prices else "not published"
        yield (
            f"{found['model']:<26} {tokens(found['window_tokens']):>8} "
            f"{tokens(found['max_output_tokens']):>8}   {cost}"
        )
    for found in local:
        state = (
            "installed" if found["installed"] else f"not installed, {human_size(found['bytes'])}"
        )
        yield f"{found['model']:<26} {found['what']} ({state})"


def _fields(able: Capabilities) -> JsonObject:
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


@command.command("install", epilog="Example: longhold model install smollm2")
@click.argument("name", type=click.Choice(sorted(CATALOG)))
@options.as_json
def install_model(name: str, as_json: bool) -> None:
    """Download a local model's weights and check their hash."""
    last = ""

    def show(progress: InstallProgress) -> None:
        nonlocal last
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0
        line = f"{progress.step}: {share:.0%} of {human_size(progress.total_bytes)}"
        if line != last and (sys.stderr.isatty() or progress.step != last.partition(":")[0]):
            rewrite_line(f"{line:<60}")
        last = line

    path = install(name, progress=show)
    lines = ["", str(path), f"Next: longhold model test local/{name}"]
    report(as_json, {"model": f"local/{name}", "path": str(path)}, lines)


@command.command("test", epilog="Example: longhold model test local/smollm2")
@click.argument("name")
@options.base_url
@options.as_json
def test_model(name: str, base_url: str, as_json: bool) -> None:
    """Ask a model one question and time the answer."""
    began = time.monotonic()
    reply, first_seconds = asyncio.run(_ask(name, base_url))
    seconds = time.monotonic() - began
    text = text_of(reply.content)
    timing = (
        f"{reply.model}: first words after {first_seconds:.1f} s, {seconds:.1f} s in all, "
        f"{reply.usage.prompt_tokens} tokens in, {reply.usage.output_tokens} out"
    )
    report(
        as_json,
        {
            "model": reply.model,
            "text": text,
            "usage": reply.usage,
            "first_text_seconds": round(first_seconds, 3),
            "seconds": round(seconds, 3),
        },
        [text, timing],
    )


async def _ask(name: str, base_url: str) -> tuple[Reply, float]:
    model = open_model(name, base_url=base_url or None, is_typed=True)
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
