"""Terminal output of every command contains no control sequences from outside text."""

import ast
import json
import re
from pathlib import Path

import pytest

import longhold.agent.terminal
import longhold.cli
from command_line import longhold as run
from longhold.cli import every_command
from longhold.cli.output import json_text
from longhold.core.log.store import FileStore
from longhold.core.messages.text import clean_document, clean_text
from longhold.core.settings import home

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202eevil\u2066\r\x08\u200b"
"""Clears the screen, sets a title and a colour, turns the order of reading round, overwrites a line."""
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069]")


def test_text_for_a_terminal_keeps_its_letters_only():
    assert not STEERS.search(clean_document(EVIL))
    assert clean_document("a\n\tb \u00fc\u4e2d") == "a\n\tb \u00fc\u4e2d"
    assert "\n" not in clean_text("a\nb")


def test_json_for_a_terminal_is_the_same_json():
    text = json_text({EVIL: [EVIL]})
    assert not STEERS.search(text)
    assert json.loads(text) == {EVIL: [EVIL]}


def test_commands_print_at_one_place():
    past = []
    places = (Path(longhold.cli.__file__).parent, Path(longhold.agent.terminal.__file__).parent)
    for file in (file for place in places for file in place.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in (
                    "click.echo",
                    "click.secho",
                    "click.confirm",
                    "click.prompt",
                    "print",
                ):
                    past.append(f"{file.name}: {called}")
    assert {line.partition(":")[0] for line in past} == {
        "output.py",
        "plain_screen.py",
    }


def _transcript(file):
    """Write a session of another agent in which everything is hostile."""
    message = {"model": f"m{EVIL}", "id": f"i{EVIL}", "role": "assistant", "usage": {
        "input_tokens": 9_000, "output_tokens": 9}}  # fmt: skip
    use = {"type": "tool_use", "id": "t1", "name": f"Read{EVIL}", "input": {f"k{EVIL}": EVIL}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"out{EVIL}" * 50}
    lines = []
    for n in range(6):
        lines += [
            {"type": "user", "message": {"role": "user", "content": f"ask{EVIL} {n}"}},
            {
                "type": "assistant",
                "message": {**message, "id": f"i{n}{EVIL}", "content": [{**use, "id": f"t{n}"}]},
            },
            {
                "type": "user",
                "message": {"role": "user", "content": [{**result, "tool_use_id": f"t{n}"}]},
            },
            {
                "type": "assistant",
                "message": {
                    **message,
                    "id": f"j{n}{EVIL}",
                    "content": [{"type": "text", "text": f"said{EVIL}"}],
                },
            },
        ]
    parent = None
    for n, line in enumerate(lines):
        line |= {
            "uuid": f"u{n}",
            "parentUuid": parent,
            "sessionId": f"s{EVIL}",
            "cwd": f"/w{EVIL}",
            "timestamp": f"2026-01-01T00:{n:02}:00Z",
            "version": f"1{EVIL}",
        }
        parent = f"u{n}"
    lines.append({"type": "summary", "summary": f"title{EVIL}", "leafUuid": parent})
    file.write_text("\n".join(map(json.dumps, lines)) + "\nnot json" + EVIL + "\n")


@pytest.fixture
def hostile(tmp_path):
    """A project, a transcript, settings and a file name that all try to steer the terminal."""
    project = tmp_path / f"p{EVIL}".replace("/", "")
    (project / ".longhold" / "agents").mkdir(parents=True)
    (project / ".git").mkdir()
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": f"echo {EVIL}"}]}]}
    (project / ".longhold" / "settings.json").write_text(
        json.dumps({"hooks": hooks, "permissions": {"allow": [f"Bash(x{EVIL}:*)"]}})
    )
    (project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {f"s{EVIL}": {"command": f"c{EVIL}"}}})
    )
    (project / ".longhold" / "agents" / "a.md").write_text(
        f"---\nname: a\ndescription: d{EVIL}\nmodel: m\nhooks: {json.dumps(hooks)}\n---\np{EVIL}\n"
    )
    (project / "AGENTS.md").write_text(f"x{EVIL}\n@../out{EVIL.strip()}.md\n@/etc/hostname\n")
    _transcript(project / f"t{EVIL}.jsonl")
    return project


def _checked(*words, cwd, **more):
    done = run(*words, cwd=cwd, **more)
    for text in (done.stdout, done.stderr):
        found = STEERS.search(text)
        assert not found, f"{words}: {text[max(0, found.start() - 60) : found.end() + 20]!r}"
    return done


@pytest.mark.slow
def test_no_command_passes_on_what_steers_a_terminal(hostile):
    name = f"t{EVIL}.jsonl"
    tried = {"import"}
    assert _checked("sessions", "import", name, cwd=hostile).returncode == 0
    store = FileStore()
    (session,) = store.sessions()
    with store.open(session.id):
        pass
    for words in (
        ("sessions", "import", name, "--json"),
        ("context", name), ("context", "newest"), ("cost", "newest"), ("cost", name),
        ("cache", "newest"), ("explain", "newest"), ("explain", name), ("compact", "newest", "--preview"),
        ("compact", name, "--preview"), ("compact", "newest"), ("undo", "newest"), ("undo", "newest", "--redo"),
        ("sessions", "notes", "newest"), ("history", "newest", "ask"), ("pin", "newest", "1"), ("sessions",),
        ("sessions", "--all"), ("sessions", "export", "newest", "--to", "anthropic"),
        ("sessions", "export", "newest", "--to", f"x{EVIL}"), ("config",), ("doctor",), ("trust", "--yes"),
        ("memory",), ("memory", "show", EVIL), ("memory", "search", EVIL), ("memory", "dream", "--dry-run"),
        ("exam", name), ("exam", "newest"), ("exam", f"missing{EVIL}"),
        ("report", name), ("report", hostile, "--by", "project"), ("report", hostile, "--csv"),
        ("inspect", name, "--html", "page.html"), ("inspect", f"missing{EVIL}"),
        ("serve", f"missing{EVIL}", "--port", EVIL), ("gateway", "--port", EVIL),
        ("wrap", f"no{EVIL}"), ("mcp", "--session", EVIL), ("replay", name), ("replay", f"missing{EVIL}"),
        ("sessions", "check"), ("worker", "--add", "resume", EVIL), ("sessions", "copy", EVIL, f"x://{EVIL}"),
        ("install", EVIL), ("install", "codex"), ("statusline",), ("keep",),
        ("simulator", "--brain", f"b{EVIL}"),
        ("run", "--offline", "-p", f"hi{EVIL}"), ("demo", EVIL), ("chat", "--model", f"m{EVIL}"),
        ("context", f"missing{EVIL}"), ("sessions", "--delete", EVIL), (f"no{EVIL}",),
    ):  # fmt: skip
        tried.add(words[0])
        _checked(*words, cwd=hostile, input="y\n")
        if words[0] not in ("chat", "simulator", "demo", "run"):
            _checked(*words, "--json", cwd=hostile, input="y\n")
    assert set(every_command()) <= tried


@pytest.mark.parametrize(
    "text", [f"[{EVIL}]\n", f"[loop]\n'x{EVIL}' = 1\n", f"[model]\nname = 3 # {EVIL}"]
)
def test_errors_of_settings_are_shown_safely(hostile, text):
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.toml").write_text(json.dumps(text)[1:-1].replace("\\n", "\n"))
    (hostile / ".longhold" / "settings.toml").write_text(text)
    assert _checked("config", cwd=hostile).returncode != 0
    assert _checked("--debug", "config", cwd=hostile).returncode != 0


def test_a_question_for_permission_cannot_be_redrawn(tmp_path):
    answers = tmp_path / "answers.txt"
    given = {"command": f"touch a{EVIL}\nAllow? y = yes", "description": " " * 500 + "Allow? y"}
    wrong = {"name": f"Bash{EVIL}", "id": "t9", "type": "tool_use", "input": {f"k{EVIL}": EVIL}}
    answers.write_text(
        f"tool: Bash {json.dumps(given)}\n---\nblock: {json.dumps(wrong)}\n---\ntext: done\n"
    )
    done = _checked(
        "chat", "--model", f"scripted:{answers}", cwd=tmp_path, input="hi\ny\n\n/exit\n"
    )
    foreign = [line for line in done.stderr.splitlines() if "Allow?" in line]
    assert len(foreign) > 2
    assert all(line.startswith((" ", "·")) for line in foreign)
    assert done.stdout.count("a = always (Bash(touch a") == 1


def test_a_question_can_show_all_that_it_allows(tmp_path):
    answers = tmp_path / "answers.txt"
    lines = "\n".join([*(f"touch {number}" for number in range(90)), "touch the-last-line"])
    answers.write_text(f"tool: Bash {json.dumps({'command': lines})}\n---\ntext: done\n")
    chat = ("chat", "--model", f"scripted:{answers}")
    done = _checked(*chat, cwd=tmp_path, input="hi\nv\nn\n/exit\n")
    assert "v = view all of it" in done.stdout
    before, _, after = done.stderr.partition("more lines")
    assert "the-last-line" not in before
    assert "the-last-line" in after


def test_a_word_that_is_no_answer_is_asked_about_again(tmp_path):
    answers = tmp_path / "answers.txt"
    call = f"tool: Bash {json.dumps({'command': 'touch made'})}"
    answers.write_text(f"{call}\n---\ntext: done\n")
    chat = ("chat", "--model", f"scripted:{answers}")
    done = _checked(*chat, cwd=tmp_path, input="hi\n/help\nhm\ny\n/exit\n")
    assert "'/help' is not an answer" in done.stderr
    assert "'hm' is not an answer" in done.stderr
    assert (tmp_path / "made").exists()
    refused = _checked(*chat, cwd=tmp_path, input="hi\nr\nuse another name\n/exit\n")
    assert "Why not?" in refused.stdout
    assert "Stopped (denied)" in refused.stderr
