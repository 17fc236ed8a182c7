"""Random bytes for every reader of outside data: does anything fail except with a typed error?

Importers, the log's loader, hooks' output, settings, definitions, skills, memories, mail, front
matter, streams, tool inputs and gateway requests read mutated samples. With atheris, which measures
coverage, each reader gets its own process. Without it, samples are mutated at random from a seed.
`crashes` counts inputs that raised something their callers do not expect, gave a view that an API
would refuse, or took longer than a second of CPU time.

    python benchmarks/fuzz.py [--runs 20000] [--door NAME] [--seed 1] [--no-atheris] [--json]
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

from longhold.agent.hooks import EVENTS, read_verdict
from longhold.agent.subagents.definition import read_definition
from longhold.agent.subagents.mail import Mail, render
from longhold.agent.tools.skills import find_skills
from longhold.agent.tools.standard import STANDARD
from longhold.core.log import load
from longhold.core.memory import memory
from longhold.core.messages.rules import violations
from longhold.core.models.assemble import Assembly, ChatAssembly
from longhold.core.settings import load_settings
from longhold.core.settings.front_matter import UnreadableFrontMatter, read_front
from longhold.core.tools.context import ToolContext
from longhold.core.view import fold
from longhold.core.wire.messages import guard_reading
from longhold.errors import LongholdError
from longhold.gateway.endpoints import ENDPOINTS, read_call
from longhold.insight.transcripts.formats import FORMATS, load_format, open_transcript
from longhold.session.dialects import guessed_dialect
from longhold.session.importing.transcript_writer import TranscriptWriter

SLOW_SECONDS = 1.0
SAMPLES = (
    b'{"type":"user","message":{"role":"user","content":"hi"},"uuid":"a","sessionId":"s"}\n'
    b'{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-sonnet-4-6",'
    b'"content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"/a"}}],'
    b'"usage":{"input_tokens":3,"output_tokens":4}},"uuid":"b","parentUuid":"a"}\n',
    b'{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}\n'
    b'{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message",'
    b'"role":"user","content":[{"type":"input_text","text":"hi"}]}}\n',
    b'{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}\n'
    b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}\n',
    b'[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"yo"}]}]',
    b'{"longhold":1,"session":"s","created":1.0,"directory":"/w"}\n'
    b'{"t":"said","n":1,"at":1.0,"content":[{"type":"text","text":"hi"}]}\n'
    b'{"t":"replied","n":2,"response_id":"r","content":[{"type":"text","text":"yo"}]}\n',
    b'{"decision":"block","reason":"no","hookSpecificOutput":{"permissionDecision":"deny"}}',
    b"[window]\nlimit_tokens = 32000\n[memory]\nconsent = 'ask'\n",
    b"---\nname: reviewer\ndescription: reviews\ntools: Read, Grep\nmodel: inherit\n---\n\nReview.\n",
    b'{"id":"1","sender":"a","to":"b","body":{"type":"note","text":"hi"},"at":1.0}',
    b'{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{}}}\n'
    b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n'
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n'
    b'{"type":"content_block_stop","index":0}\n{"type":"message_stop"}\n',
    b'{"id":"c","model":"gpt-5","choices":[{"index":0,"delta":{"content":"a","tool_calls":'
    b'[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}\n',
    b'{"model":"gpt-5","messages":[{"role":"user","content":"hi"}],"tools":[],"max_tokens":5}',
    b'{"file_path":"/a","old_string":"a","new_string":"b","command":"ls","pattern":"a*"}',
)
ODD = (b"null", b"[]", b"{}", b'""', b"1e999", b"-1", b"\\ud800", b"\0", b"[" * 300, b"9" * 400)


def _file(data: bytes, name: str) -> Path:
    path = Path(os.environ["LONGHOLD_HOME"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def importers(data: bytes) -> None:
    with open_transcript(_file(data, "given.jsonl")) as found:
        view = fold(found.entries)
    assert not violations(view.messages())
    for name in FORMATS:
        view = fold(
            load_format(name).read(iter(data.splitlines(keepends=True)), TranscriptWriter())
        )
        assert not violations(view.messages()), name


def log_loader(data: bytes) -> None:
    view = fold(load(_file(data, "given.log.jsonl")).entries)
    assert not violations(view.messages())


def hook_output(data: bytes) -> None:
    for event in EVENTS.values():
        read_verdict(event, data[0] % 4 if data else 0, data.decode(errors="replace"), "")


def settings(data: bytes) -> None:
    _file(data, "settings.toml")
    load_settings()


def definitions(data: bytes) -> None:
    with suppress(UnreadableFrontMatter):
        read_definition(data.decode(errors="replace"), Path("/w/agent.md"), "project")


def skills(data: bytes) -> None:
    file = _file(data, "skills/given/SKILL.md")
    find_skills(file.parents[1])


def memories(data: bytes) -> None:
    kept = memory.parse("given.md", data.decode(errors="replace"))
    memory.parse("given.md", kept.text)


def front_matter(data: bytes) -> None:
    with suppress(UnreadableFrontMatter):
        read_front(data.decode(errors="replace"))


def mail(data: bytes) -> None:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        render(msgspec.json.decode(data, type=Mail))


def streams(data: bytes) -> None:
    for assembly in (Assembly(), ChatAssembly()):
        with suppress(msgspec.DecodeError, UnicodeDecodeError), guard_reading():
            for line in data.splitlines():
                raw = msgspec.json.decode(line)
                if isinstance(raw, dict):
                    assembly.feed(raw)
            assembly.end()


def tool_inputs(data: bytes) -> None:
    try:
        given = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    place = Path(os.environ["LONGHOLD_HOME"]) / "work"
    place.mkdir(exist_ok=True)
    context = ToolContext(root=place, home=place, scratch=place)
    for tool in STANDARD:
        if isinstance(given, dict) and tool.kind in ("read", "search"):
            asyncio.run(tool.run(given, context))


def gateway_requests(data: bytes) -> None:
    for endpoint in ENDPOINTS.values():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            call = read_call(endpoint, data, {})
            if call is not None:
                guessed_dialect(call.messages)
                _ = call.output_limit, call.system, call.tools


CHECKED = (
    *(importers, log_loader, hook_output, settings, definitions, skills, memories),
    *(front_matter, mail, streams, tool_inputs, gateway_requests),
)
DOORS: dict[str, Callable[[bytes], None]] = {door.__name__: door for door in CHECKED}


def tried(door: str, data: bytes) -> str:
    """Hand bytes to a door; return what went wrong, or ""."""
    began = time.process_time()
    try:
        DOORS[door](data)
    except LongholdError:
        pass
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"{door}: {type(error).__name__}: {error} from {data[:300]!r}"
    took = time.process_time() - began
    return f"{door}: {took:.1f} s for {data[:300]!r}" if took > SLOW_SECONDS else ""


def mutated(dice: random.Random) -> bytes:
    """Spoil a sample in a few places."""
    data = bytearray(dice.choice(SAMPLES))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(data) + 1)
        end = min(len(data), at + dice.randrange(1, 30))
        match dice.randrange(5):
            case 0:
                data[at:end] = b""
            case 1:
                data[at:at] = dice.choice(ODD)
            case 2:
                data[at:end] = dice.choice(ODD)
            case 3:
                data[at:at] = data[at:end] * dice.randrange(1, 20)
            case _:
                data[at:end] = dice.randbytes(end - at)
    return bytes(data)


def by_chance(doors: list[str], runs: int, seed: int) -> Iterator[str]:
    dice = random.Random(seed)
    for _, door in zip(range(runs), cycle(doors), strict=False):
        if found := tried(door, mutated(dice)):
            yield found


INSTRUMENTED = (
    "import atheris, runpy, sys; sys.argv.pop(0)\n"
    "with atheris.instrument_imports(include=['longhold'], enable_loader_override=False):\n"
    "    runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""How a process that atheris guides imports what it tests."""


def by_coverage(door: str, runs: int, seed: int) -> str:
    """Let atheris try one door in a process of its own; return what it found, or ""."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, sample in enumerate(SAMPLES):
            (Path(corpus) / str(number)).write_bytes(sample)
        words = [sys.executable, "-c", INSTRUMENTED, __file__, "--door", door, "--guided"]
        words += [corpus, str(runs), str(seed)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=corpus)
    said = [line for line in done.stdout.splitlines() if line.startswith(f"{door}: ")]
    return said[0] if said else "" if done.returncode == 0 else f"{door}: {done.stderr[-500:]}"


def guided(door: str, corpus: str, runs: str, seed: str) -> None:
    import atheris

    def one(data: bytes) -> None:
        if found := tried(door, data):
            print(found, flush=True)
            raise AssertionError(found)

    flags = [f"-runs={runs}", f"-seed={seed}", "-max_len=4096", "-verbosity=0", corpus]
    with tempfile.TemporaryDirectory() as home:
        os.environ["LONGHOLD_HOME"] = home
        atheris.Setup([door, *flags], one)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20_000, help="inputs for all doors together")
    parser.add_argument("--door", choices=DOORS, action="append")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-atheris", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--guided", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    doors = options.door or list(DOORS)
    if options.guided:
        guided(doors[0], *options.guided)
        return
    is_guided = find_spec("atheris") is not None and not options.no_atheris
    with tempfile.TemporaryDirectory() as place:
        os.environ["LONGHOLD_HOME"] = place
        if is_guided:
            each = options.runs // len(doors)
            found = [said for door in doors if (said := by_coverage(door, each, options.seed))]
        else:
            found = list(by_chance(doors, options.runs, options.seed))
    report: dict[str, Any] = {"inputs": options.runs, "crashes": len(found), "guided": is_guided}
    report |= {"seed": options.seed, "examples": found[:10]}
    print(json.dumps(report) if options.json else "\n".join(f"{k}: {v}" for k, v in report.items()))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
