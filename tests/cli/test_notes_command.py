"""`longhold notes`, and notes in the session list, `explain` and resumed sessions."""

import json

import pytest
from click.testing import CliRunner

from generated_sessions import write
from longhold.cli import cli
from longhold.core.log import load
from longhold.core.log.entries import Noted, Replied, Said, Switched
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, ToolUse
from longhold.core.settings import home
from longhold.core.stages.notes.file import NotesFile, load_page
from longhold.core.stages.notes.update import template


@pytest.fixture
def session(tmp_path):
    """A session in which something was done and nothing noted."""
    with FileStore().create(directory=tmp_path, session="abc") as log:
        log.append(Switched(model="claude-opus-4-6"))
        log.append(Said(content=(Text(text="Fix the login, and keep the cookie."),)))
        use = ToolUse(id="t1", name="Bash", input={"command": "make test"})
        log.append(Replied(response_id="r1", content=(use,)))
        log.append(Replied(response_id="r2", content=(Text(text="It is fixed."),)))
    return FileStore().find("abc")


def run(*arguments, **options):
    done = CliRunner().invoke(
        cli, ["sessions", "notes", *arguments], catch_exceptions=False, **options
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def notes(session):
    return session.directory / "notes.md"


def keep_notes(session):
    """Write the notes that the log gives, as a session does while it runs."""
    file, history = NotesFile(session.directory, template(home())), load(session.path).entries
    file.write(load_page(file, history), file.read())


def test_a_session_without_notes_is_told_from_its_log(session):
    shown = run("abc")
    assert "## Current state" in shown and "Fix the login, and keep the cookie." in shown
    assert not notes(session).exists()


def test_an_edit_is_written_and_the_log_knows(session, monkeypatch, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/^## Task$/## Task\\nMind the reef./' \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    assert "Mind the reef." in run("abc", "--edit")
    assert "Mind the reef." in notes(session).read_text()
    noted = [entry for entry in load(session.path).entries if isinstance(entry, Noted)]
    assert [entry.by for entry in noted] == ["person"]


def test_what_was_written_while_the_editor_was_open_stays(session, monkeypatch, tmp_path):
    keep_notes(session)
    page = notes(session)
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nsed -i 's/^## Task$/## Task\\nMind the reef./' \"$1\"\n"
        f"sed -i 's/^## Learnings$/## Learnings\\nTides turn./' {page}\n"
    )
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    before = page.read_text().count("Fix the login")
    run("abc", "--edit")
    text = page.read_text()
    assert "Mind the reef." in text and "Tides turn." in text
    assert text.count("Fix the login") == before


def test_machines_get_who_wrote_what(session):
    keep_notes(session)
    told = json.loads(run("abc", "--json"))
    task = next(each for each in told["sections"] if each["heading"] == "Task")
    assert (told["session"], told["is_kept"]) == ("abc", True)
    assert task["written"] == "" and "Fix the login" in task["from_the_log"]
    assert len(told["sections"]) == 10


def test_notes_give_a_session_its_title(session, tmp_path, monkeypatch):
    keep_notes(session)
    page = notes(session).read_text()
    notes(session).write_text(page.replace("## Title\n", "## Title\nLogin, mended\n"))
    monkeypatch.chdir(tmp_path)
    listed = CliRunner().invoke(cli, ["sessions"]).stdout
    assert "Login, mended" in listed


def test_explain_tells_of_notes(session):
    from longhold.core.log import Log

    with Log.open(session.path) as log:
        log.append(Noted(cursor=4, by="model", tokens=900))
    told = CliRunner().invoke(cli, ["explain", "abc"]).stdout
    assert "noted: up to message 4, by a model: about 900 tokens" in told


def test_who_comes_back_is_told_where_they_were(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        cli, ["run", "--offline", "--resume", "abc", "-p", "What is left?"], catch_exceptions=False
    )
    assert "Where you were:\nFix the login, and keep the cookie." in done.stderr


def test_a_file_shows_the_notes_its_history_gives(tmp_path):
    file = tmp_path / "made-up.jsonl"
    write(file, 3, 40)
    before = sorted(tmp_path.iterdir())
    shown = CliRunner().invoke(cli, ["sessions", "notes", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "## " in shown.stdout
    assert sorted(tmp_path.iterdir()) == before
    assert (
        "import it first"
        in CliRunner().invoke(cli, ["sessions", "notes", str(file), "--edit"]).output
    )
