"""The documentation is correct: examples run, commands parse, and names exist."""

import ast
import asyncio
import functools
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from contracts import KINDS
from generated_sessions import write
from longhold.cli import LazyGroup, cli
from longhold.core.models.prices import prices
from longhold.core.settings import Settings, home, load_settings
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain
from pages import GENERATED, ROOT, SOURCE, Page, pages

PAGES = pages()
LEAD = "# Commands\n\nGenerated from the commands themselves by `make golden`; do not edit.\n"

ADDING = 'text: Adding.\ntool: add {"a": 2, "b": 3}\n---\ntext: It is 5.'
ANSWERS = {
    "docs/quickstart-library.md": ADDING,
    "docs/library.md": 'text: Adding.\ntool: add {"a": 2, "b": 3}\n---\nerror: 529\n---\ntext: It is 5.',
}
"""What the simulator answers to the examples of a page, from the start for each of them."""
ADAPTERS = "docs/adapters.md"
NEEDS = ("langchain_anthropic", "pydantic_ai", "agents")
"""The frameworks without which the examples of that page cannot run, in the order of the page."""
ANSWER = "text: Done."


def over(chosen):
    """Run a test once for each of these pages."""
    return pytest.mark.parametrize("page", chosen, ids=lambda page: page.name)


every_page = over(PAGES)


def rendered() -> str:
    """Write every command's help as one page."""
    with click.Context(cli, info_name="longhold") as outer:
        return LEAD + "".join(_helps(cli, outer))


def _helps(group: click.Group, outer: click.Context) -> Iterator[str]:
    for name in group.list_commands(outer):
        command = group.get_command(outer, name)
        assert command is not None
        with click.Context(command, info_name=name, parent=outer, max_content_width=100) as inner:
            yield f"\n## {inner.command_path}\n\n```\n{command.get_help(inner)}\n```\n"
            if isinstance(command, LazyGroup):
                yield from _helps(command, inner)


def test_the_page_of_commands_is_what_the_commands_say():
    if os.environ.get("LONGHOLD_REWRITE_GOLDEN"):
        GENERATED.write_text(rendered(), encoding="utf-8")
    assert GENERATED.read_text(encoding="utf-8") == rendered()


# Python examples


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """An empty directory to work in, and keys that open nothing but the simulator."""
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "any")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(NEEDS)), ids=NEEDS)
def test_every_example_of_an_adapter_runs(place, elsewhere):
    pytest.importorskip(NEEDS[place], reason="the framework is not installed")
    [page] = [page for page in PAGES if page.name == ADAPTERS]
    program, shown = page.of("python")[place], page.of("output")[place]
    with run_simulator(ScriptedBrain(ADDING)) as simulator:
        urls = {"ANTHROPIC_BASE_URL": simulator.url, "OPENAI_BASE_URL": f"{simulator.url}/v1"}
        done = subprocess.run(
            [sys.executable, "-c", program.body],
            env=os.environ | urls,
            capture_output=True,
            text=True,
        )
    assert _fits(done.stdout, shown.body), done.stderr


@over([page for page in PAGES if page.of("python") and page.name != ADAPTERS])
def test_every_python_example_runs(page, monkeypatch, capsys, elsewhere):
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    with asyncio.Runner() as runner:
        for block in page.blocks:
            if block.language == "output":
                assert _fits(printed, block.body), f"{page.name}:{block.line}: {printed}"
            if block.language != "python":
                continue
            if "no-run" in block.options:
                assert block.reason, f"{page.name}:{block.line} does not say why it is not run"
                continue
            with run_simulator(ScriptedBrain(ANSWERS.get(page.name, ANSWER))) as simulator:
                monkeypatch.setenv("ANTHROPIC_BASE_URL", simulator.url)
                monkeypatch.setenv("OPENAI_BASE_URL", f"{simulator.url}/v1")
                _run(block.body, f"{page.name}:{block.line}", names, runner)
            printed = capsys.readouterr().out


def _run(source: str, where: str, names: dict[str, object], runner: asyncio.Runner) -> None:
    """Run an example; one that awaits at its top level stands inside the reader's own loop."""
    code = compile(source, where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, names))
    else:
        exec(code, names)


def _fits(printed: str, shown: str) -> bool:
    """Hold what was printed against what a page shows; `…` stands for anything."""
    return bool(re.fullmatch(re.escape(shown.strip()).replace("…", ".*"), printed.strip(), re.S))


# Commands


SHELLS = ("sh", "console")
PLACEHOLDER = re.compile(r"\[?[A-Z…|]+\]?|.*[|…].*")


def commands(page: Page) -> Iterator[tuple[str, list[str]]]:
    """Yield each command line of a page, in a block or in backticks, as words."""
    lines = [
        line.removeprefix("$ ") for block in page.of(*SHELLS) for line in block.body.splitlines()
    ]
    for line in (*lines, *page.inline):
        for part in re.split(r" \| | && |; ", line):
            if part.startswith(("longhold ", "python ", "pytest ", "make ")):
                yield line, shlex.split(part, comments=True)


def _check_longhold(words: list[str]) -> None:
    """Let click read the options of a command, and of each alternative of `a|b`."""
    command: click.Command = cli
    context = click.Context(cli, info_name="longhold")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        one, *others = [name for name in words[0].split("|") if name != "…"]
        assert all(command.get_command(context, name) for name in (one, *others)), words
        found = command.get_command(context, one)
        assert found is not None
        command, words = found, words[1:]
        context = click.Context(command, info_name=one, parent=context)
    try:
        command.make_parser(context).parse_args(list(words))
    except click.BadOptionUsage:  # an option named without its value
        command.make_parser(context).parse_args([*words, "…"])


def _options_of(script: Path) -> set[str]:
    """Read which options a benchmark takes, its own and those of most, without running it."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    given = [arg for call in called for arg in call.args if isinstance(arg, ast.Constant)]
    own = {arg.value for arg in given if str(arg.value).startswith("--")}
    for call in called:
        match getattr(call.func, "id", ""):
            case "make_parser":
                own |= {"--json", *(f"--{key.arg}" for key in call.keywords)} - {"--takes_files"}
            case "make_replay_parser":
                own |= _options_of(script.with_name("harness.py"))
    return own


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


@every_page
def test_every_command_line_is_one_that_works(page):
    for line, words in commands(page):
        match words:
            case ["longhold", *rest]:
                try:
                    _check_longhold(rest)
                except click.UsageError as error:
                    pytest.fail(f"{page.name}: {line}: {error.format_message()}")
            case ["python", script, *rest] if script.endswith(".py"):
                assert (ROOT / script).is_file(), f"{page.name}: {line}"
                unknown = {word for word in rest if word.startswith("--")} - _options_of(
                    ROOT / script
                )
                assert not unknown, f"{page.name}: {line}"
            case ["pytest", *rest]:
                named = [b for a, b in pairwise(["", *rest]) if "/" in b and not a.startswith("--")]
                assert all((ROOT / word).exists() for word in named), line
                known = {f"--{kind}" for kind in KINDS} | {"--pyargs"}
                assert {word for word in rest if word.startswith("--")} <= known, line
            case ["make", *rest]:
                assert set(rest) <= _targets(), line


LONG = {"chat", "demo", "install", "simulator", "serve", "gateway", "wrap", "mcp", "model", "run"}
"""Commands that talk, wait or take a while; they are parsed here and run by tests of their own."""
BEFORE = (
    "sessions import session.jsonl",
    "compact newest --up-to 80",
    "compact newest",
    "undo newest",
    "memory edit deploys.md --text -",
    "memory edit board.md --text -",
    "memory forget board.md --why closed",
)
"""So there is a session with a compaction in force and one undone, a memory, and one forgotten."""


def _is_runnable(words: list[str]) -> bool:
    return (
        words[0] == "longhold"
        and words[1] not in LONG
        and not any(PLACEHOLDER.fullmatch(word) for word in words)
    )


def _shown(page: Page) -> list[list[str]]:
    """List the command lines in a page's blocks that stand there whole, without placeholders."""
    lines = {line for block in page.of(*SHELLS) for line in block.body.splitlines()}
    found = (words for line, words in commands(page) if line in lines or f"$ {line}" in lines)
    return [words for words in found if _is_runnable(words)]


def _invoke(words: Sequence[str]) -> str:
    done = CliRunner().invoke(cli, words, input="Deploys go out on Tuesdays.\n")
    assert done.exit_code == 0, f"{shlex.join(words)}: {done.output} {done.exception!r}"
    return done.output


@pytest.fixture
def prepared(elsewhere):
    """A home with something to look at, and transcripts of another agent under the pages' names."""
    for name in ("session.jsonl", "path/to/session.jsonl"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(Path(name), 3, 200)
    for line in BEFORE:
        _invoke(line.split())
    return elsewhere


@over([page for page in PAGES if _shown(page)])
def test_every_command_shown_whole_runs(page, prepared, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("EDITOR", "true")
    before, place = home(), prepared
    with run_simulator(ScriptedBrain(ANSWER)) as simulator:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", simulator.url)
        for words in _shown(page):
            again = tmp_path_factory.mktemp("again") / "home"
            shutil.copytree(before, again)
            monkeypatch.setenv("LONGHOLD_HOME", str(again))
            monkeypatch.chdir(place)
            _invoke(words[1:])


# Settings and other files


@every_page
def test_every_settings_file_shown_loads(page, tmp_path):
    for block in page.of("toml"):
        if block.body.startswith("# prices.toml"):
            (home() / "prices.toml").write_text(block.body, encoding="utf-8")
            assert all(prices(model) for model in tomllib.loads(block.body))
        else:
            (home() / "settings.toml").write_text(block.body, encoding="utf-8")
            load_settings(tmp_path)


@every_page
def test_every_json_block_is_json(page):
    for block in page.of("json"):
        try:
            json.loads(block.body)
        except ValueError:
            assert [json.loads(line) for line in block.body.splitlines()]


# Names


@functools.cache
def _modules() -> frozenset[str]:
    return frozenset(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


@every_page
def test_every_path_named_is_there(page):
    missing = [target for target in page.links if not (page.path.parent / target).exists()]
    for name in page.inline:
        path = re.sub(r":.*|#.*", "", name)
        if re.fullmatch(r"(src|tests|benchmarks|docs)/[\w./-]*", path):
            missing += [name] if not (ROOT / path).exists() else []
        elif re.fullmatch(r"[\w/]+\.py", path):
            missing += (
                [name] if not any(f"/{one}".endswith(f"/{path}") for one in _modules()) else []
            )
        elif re.fullmatch(r"[a-z_]+(/[a-z_]+)*/", path) and (SOURCE / path.split("/")[0]).is_dir():
            missing += [name] if not (SOURCE / path).is_dir() else []
    assert not missing


@every_page
def test_every_dotted_name_resolves(page):
    for name in page.inline:
        if re.fullmatch(r"longhold(\.\w+)+(\(.*\))?", name):
            _resolve(name.partition("(")[0])


def _resolve(name: str) -> object:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[length:], found)
    raise AssertionError(f"there is no {name}")


FILES = ("py", "md", "toml", "json", "jsonl", "sqlite")
"""Endings of file names, which are no settings."""


@pytest.mark.parametrize("name", ["window.auto_line", "budget.own_share"])
def test_the_page_for_operators_has_the_defaults_that_cost_or_surprise(name):
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    section, key = name.split(".")
    default = getattr(getattr(Settings(), section), key)
    assert f"`{name} = {json.dumps(default)}`" in page


@every_page
def test_every_setting_named_exists(page):
    settings = Settings()
    for name in page.inline:
        found = re.match(r"([a-z]+)\.([a-z_0-9]+)(?= =|$)", name)
        if found and hasattr(settings, found[1]) and found[2] not in FILES:
            assert hasattr(getattr(settings, found[1]), found[2]), f"{page.name}: {name}"
