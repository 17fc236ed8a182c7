"""Extremely nested or repeated input is read or refused, with a typed error and in time.

Input from repositories, hooks, agents and importers is small if people write it. Each reader gets
every shape, and must return a value or raise an error that its callers expect.
"""

import json
import re
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from longhold.agent.hooks import EVENTS, load_hooks, read_verdict
from longhold.agent.instructions.gathering import find_imports, without_comments
from longhold.agent.mcp import load_servers
from longhold.agent.permissions import load_permissions, parse_rules
from longhold.agent.subagents import mail
from longhold.agent.subagents.definition import read_definition
from longhold.agent.tools.globs import anchored_expression, glob_expression
from longhold.agent.tools.skills import find_skills
from longhold.core.log import load
from longhold.core.log.titles import title_of
from longhold.core.memory.recall import names_in
from longhold.core.models.scripted import read_script
from longhold.core.settings import front_matter, home, load_settings
from longhold.core.view import fold
from longhold.errors import (
    ConfigError,
    LongholdError,
    NewerFormat,
    RequestRejected,
    TranscriptError,
)
from longhold.gateway.answer import events_in
from longhold.insight.transcripts.formats import FORMATS, load_format, open_transcript
from longhold.session.importing.transcript_writer import TranscriptWriter

MANY = 20_000
LIMIT_SECONDS = 5
"""Each of them takes milliseconds on a quiet machine; what grows with a square takes minutes."""

SHAPES = {
    "arrays": "[" * MANY + "]" * MANY,
    "objects": '{"a":' * MANY + "1" + "}" * MANY,
    "never closed": "[" * MANY,
    "both": '{"a":[' * MANY + "]}" * MANY,
    "digits": "9" * MANY,
    "exponent": "1e999999999",
    "no number": "NaN",
    "half a character": '"\\ud800"',
    "zero bytes": "\0" * 100,
    "one word": '"' + "x" * MANY + '"',
    "TOML arrays": "a = " + "[" * MANY + "]" * MANY,
    "TOML tables": "a = " + "{a=" * MANY + "1" + "}" * MANY,
    "a dotted key": ".".join(["a"] * MANY) + " = 1",
    "a quoted dotted key": ".".join(['"a b"'] * MANY) + " = 1",
    "a dotted table": "[" + ".".join(["a"] * MANY) + "]",
    "YAML": "a: " + "[" * MANY + "]" * MANY,
    "YAML by indent": "\n".join(" " * depth + "a:" for depth in range(500)),
    "parentheses": "(" * MANY + ")" * MANY,
    "braces": "{a," * MANY + "b" + "}" * MANY,
    "many braces": "{a,b}" * MANY,
    "ticks": "`" * MANY,
    "quotes": "> " * MANY,
    "lists": "- " * MANY,
    "stars": "*" * MANY,
    "angles": "<" * MANY,
    "commands": "$(" * MANY + ")" * MANY,
}


@contextmanager
def in_time():
    def stop(number, frame):
        raise AssertionError(f"it took more than {LIMIT_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return path


def read_hook_output(text, place):
    for event in EVENTS.values():
        read_verdict(event, 0, text, "")
        read_verdict(event, 1, '{"hookSpecificOutput":{"updatedInput":' + text + "}}", text)


def read_settings(text, place):
    _file(home() / "settings.toml", text)
    load_settings(place)


def read_project_files(text, place):
    (place / ".git").mkdir(exist_ok=True)
    for name in (".longhold/settings.toml", ".claude/settings.json", ".mcp.json"):
        _file(place / name, text)
    for reader in (load_permissions, load_hooks, load_servers):
        try:
            reader(place)
        except ConfigError:
            continue


def read_front_matter(text, place):
    front_matter.parse(f"---\n{text}\n---\nbody")
    front_matter.parse(f"---\nname: {text}\n---\nbody")
    front_matter.parse_memory(f"---\nname: {text}\n---\nbody")


def read_skills(text, place):
    _file(place / "skills" / "one" / "SKILL.md", f"---\ndescription: {text}\n---\n{text}")
    find_skills(place / "skills")


def read_definitions(text, place):
    read_definition(f"---\nname: one\ntools: {text}\nhooks: {text}\n---\n{text}", Path("a"), "user")


def read_globs(text, place):
    re.compile(glob_expression(text)).fullmatch("a/b/c")
    re.compile(anchored_expression(text)).fullmatch("a/b/c")
    parse_rules(allow=(f"Bash({text})", f"Read({text})"), deny=(f"WebFetch({text})",))


def read_markdown(text, place):
    without_comments(text)
    find_imports(text)


def read_mail(text, place):
    mail.quote_lines(text)


def read_log(text, place):
    load(_file(place / "a.jsonl", f"{text}\n"))


def read_log_line(text, place):
    head = json.dumps({"longhold": 1, "session": "a"})
    line = f'{{"entry":"ran","n":1,"tool_use_id":"a","content":{text}}}'
    load(_file(place / "b.jsonl", f"{head}\n{line}\n"))


def read_transcripts(text, place):
    lines = [text, f'{{"type":"user","message":{{"role":"user","content":{text}}}}}']
    for line in lines:
        try:
            with open_transcript(_file(place / "c.jsonl", line)) as transcript:
                fold(transcript.entries).messages()
        except TranscriptError:
            pass
        raw = line.encode("utf-8", "surrogatepass")
        for format in FORMATS:
            fold(load_format(format).read(iter([raw]), TranscriptWriter())).messages()


def read_titles(text, place):
    line = '{"entry":"titled","n":1,"title":"a","more":' + text + "}"
    title_of(_file(place / "d.jsonl", f"{line}\n"))


def read_choices(text, place):
    names_in(f"These fit: {text}")


def read_streams(text, place):
    list(events_in(f"data: {text}\n\n".encode("utf-8", "surrogatepass")))


def read_scripts(text, place):
    read_script(f"tool: Read {text}")


READERS = {
    read_hook_output: (),
    read_settings: ConfigError,
    read_project_files: (),
    read_front_matter: (),
    read_skills: (),
    read_definitions: ValueError,
    read_globs: LongholdError,
    read_markdown: (),
    read_mail: (),
    read_log: (TranscriptError, NewerFormat),
    read_log_line: (),
    read_transcripts: (),
    read_titles: (),
    read_choices: RequestRejected,
    read_streams: (),
    read_scripts: ConfigError,
}
"""Each with what it may raise, which its callers expect."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_deep_and_long_input_is_read_or_refused_in_time(tmp_path, reader, shape):
    with in_time():
        try:
            reader(SHAPES[shape], tmp_path)
        except READERS[reader]:
            return
