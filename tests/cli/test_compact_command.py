"""`longhold compact`, `undo`, `redo` and `pin`, on Longhold's sessions and other files."""

import hashlib
import json
import re
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from generated_sessions import write
from longhold.cli import cli
from longhold.core.log import Header, load
from longhold.core.log.entries import Compacted, Ran, Replied, Restored, Said, add_measure
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, ToolUse, text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import home
from longhold.core.view import fold
from longhold.errors import NotInHistory, RequestRejected, StoreError
from longhold.insight.transcripts.formats import open_transcript

BODY = "\n".join(f"value_{i} = compute(value_{i - 1}, {i})" for i in range(300))


def run(*words, **options):
    return CliRunner().invoke(cli, [str(word) for word in words], **options)


def told(*words, **options):
    """Run a command that must work, and read its JSON."""
    done = run(*words, "--json", **options)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def history(session="s1"):
    return load(FileStore().find(session).path).entries


@pytest.fixture
def session(tmp_path):
    """A session that read a file of its project, in three turns."""
    (tmp_path / "a.py").write_text("x = 1\n")
    entries, n = [], 0
    for turn, words in enumerate(("Fix the login bug", "Now the logout", "And the tests")):
        use = ToolUse(id=f"t{turn}", name="Read", input={"file_path": str(tmp_path / "a.py")})
        at = time.time() + turn * 600
        entries += [
            Said(n=n + 1, at=at, content=(Text(text=words),)),
            Replied(n=n + 2, at=at, response_id=f"r{n}", model="claude-opus-4-6", content=(use,)),
            Ran(n=n + 3, at=at, tool_use_id=use.id, content=f"{turn}\n{BODY}"),
            Replied(n=n + 4, at=at, response_id=f"e{n}", content=(Text(text="Done."),)),
        ]
        n += 4
    FileStore().add(Header(session="s1", directory=str(tmp_path)), map(add_measure, entries))
    return tmp_path


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "session.jsonl"
    write(path, 3, 60)
    return path


def test_a_preview_of_a_session_changes_nothing(session):
    log = FileStore().find("s1").path
    before = (log.read_bytes(), log.stat().st_mtime_ns)
    shown = told("compact", "s1", "--preview")
    assert not shown["applied"]
    assert shown["preview"]["after_tokens"] < shown["preview"]["before_tokens"]
    assert [seam["start"] for seam in shown["seams"]] == [5, 9]
    assert (log.read_bytes(), log.stat().st_mtime_ns) == before


def test_a_session_is_compacted_where_it_is_with_its_files_restored(session):
    done = told("compact", "s1")
    entries = history()
    assert isinstance(entries[done["entry"] - 1], Compacted)
    (restored,) = [entry for entry in entries if isinstance(entry, Restored)]
    assert "x = 1" in text_of(restored.content)
    view = fold(entries)
    assert violations(view.messages()) == []
    assert "Fix the login bug" in str(view.messages())
    assert str(FileStore().find("s1").path) in str(view.messages())


def hook(event, command):
    """Give the user one hook."""
    given = {event: [{"hooks": [{"type": "command", "command": command}]}]}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "hooks.json").write_text(json.dumps({"hooks": given}))


def test_a_hook_can_forbid_it(session):
    hook("PreCompact", "echo 'not before the release' >&2; exit 2")
    done = run("compact", "s1")
    assert done.exit_code != 0
    assert "not before the release" in str(done.exception) + done.output
    assert not any(isinstance(entry, Compacted) for entry in history())
    assert run("compact", "s1", "--preview").exit_code == 0


def test_hooks_run_after_it_and_their_words_reach_the_model(session):
    answer = {"hookEventName": "PostCompact", "additionalContext": "The branch is frozen."}
    hook("PostCompact", f"echo '{json.dumps({'hookSpecificOutput': answer})}'")
    told("compact", "s1")
    said = [entry for entry in history() if isinstance(entry, Said)]
    assert (text_of(said[-1].content), said[-1].hidden) == ("The branch is frozen.", True)


def test_undo_gives_back_the_exact_view_and_redo_the_summary(session):
    before = fold(history()).messages()
    told("compact", "s1")
    after = fold(history()).messages()
    told("undo", "s1")
    assert fold(history()).messages() == before
    told("undo", "s1", "--redo")
    assert fold(history()).messages() == after


def test_what_cannot_be_undone_is_said(session):
    assert isinstance(run("undo", "s1").exception, NotInHistory)
    assert isinstance(run("undo", "s1", "1").exception, NotInHistory)
    assert isinstance(run("undo", "s1", "--redo").exception, NotInHistory)


def test_pinned_messages_stay_word_for_word(session):
    assert told("pin", "s1", "1") == [{"id": 1, "text": "Fix the login bug"}]
    told("compact", "s1")
    view = fold(history())
    assert text_of(view.items[0].content) == "Fix the login bug"
    assert told("pin", "s1", "1", "--off") == []
    assert isinstance(run("pin", "s1", "999").exception, NotInHistory)


def test_a_number_may_have_its_mark(session):
    assert told("pin", "s1", "#1") == [{"id": 1, "text": "Fix the login bug"}]
    assert run("pin", "s1", "one").exit_code == 2


def test_what_was_compacted_away_can_be_pinned(session):
    told("compact", "s1")
    before = fold(history()).messages()
    [kept] = told("pin", "s1", "1")
    assert (kept["id"], kept["text"].endswith("\nFix the login bug")) == (1, True)
    after = fold(history()).messages()
    assert after[: len(before) - 1] == before[:-1]
    assert told("pin", "s1", "1") == [kept]
    assert (
        len([entry for entry in history() if isinstance(entry, Restored) and entry.rests_on]) == 1
    )
    assert told("pin", "s1", "1", "--off") == []


def test_a_pinned_step_brings_its_result_and_undo_puts_the_original_back(session):
    told("compact", "s1")
    [kept] = told("pin", "s1", "2")
    assert f"0\n{BODY}" in kept["text"]
    told("undo", "s1")
    view = fold(history())
    assert [item.id for item in view.items if view.is_pinned(item)] == [2]
    assert not violations(view.messages())


def test_a_part_can_be_compacted_by_itself(session):
    done = told("compact", "s1", "--up-to", "4")
    assert done["preview"]["kept"] == 6
    said = [text_of(item.content) for item in fold(history()).items]
    assert "Now the logout" in said
    assert "Fix the login bug" not in said


def test_a_file_is_never_touched_and_never_overwritten(transcript, tmp_path):
    before, out = hashlib.sha256(transcript.read_bytes()).hexdigest(), tmp_path / "out.jsonl"
    done = told("compact", transcript, "--out", out)
    assert done["bytes"] == out.stat().st_size
    assert hashlib.sha256(transcript.read_bytes()).hexdigest() == before
    assert told("context", out)["format"] == "claude-code"
    again = run("compact", transcript, "--out", out)
    assert isinstance(again.exception, StoreError)
    assert isinstance(run("compact", transcript, "--out", transcript).exception, StoreError)


def test_a_preview_counts_one_as_one(tmp_path):
    use = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a line of it\n" * 3_000}
    messages = [
        {"role": "user", "content": "look at a.py"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "It has one letter."},
    ]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(messages))
    assert ", 2 answers, 1 tool call: Read 1" in run("compact", path, "--preview").output


def test_a_file_without_a_place_for_the_result_is_refused(transcript):
    assert "--out" in run("compact", transcript).output
    assert run("compact", transcript, "--preview", "--from", "1", "--up-to", "9").exit_code == 2
    assert run("compact", transcript, "--preview", "--focus", "tests").exit_code == 2


def test_a_summary_that_would_be_no_shorter_is_not_made(tmp_path):
    path, out = tmp_path / "short.json", tmp_path / "out.json"
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    path.write_text(json.dumps(messages))
    done = run("compact", path, "--out", out)
    assert isinstance(done.exception, RequestRejected)
    assert "not be shorter" in str(done.exception)
    assert not out.exists()


SECTIONS = "\n  ".join(
    f"## {n}. {name}\n  The migration of the login."
    for n, name in (
        (1, "Request and intent"),
        (2, "Technical concepts"),
        (4, "Errors and fixes"),
        (5, "Problem solving"),
        (8, "Current work"),
    )
)


def test_a_preview_with_a_model_asks_it_and_says_what_that_cost(session, tmp_path):
    script = tmp_path / "script.txt"
    script.write_text(f"text: {SECTIONS}\n")
    words = ("compact", "s1", "--preview", "--model", f"scripted:{script}", "--focus", "the login")
    before = history()
    shown = told(*words)
    assert shown["preview"]["by"] == "model"
    assert "The migration of the login." in shown["preview"]["summary"]
    assert shown["usage"]["output_tokens"] > 0
    assert "which you pay for" in run(*words).output
    assert history() == before


def test_what_a_file_does_not_hold_is_shown_apart(transcript, session):
    shown = told("compact", transcript, "--preview")["preview"]
    assert 0 < shown["unseen_tokens"] < shown["after_tokens"]
    assert "\nunseen " in run("compact", transcript, "--preview").output
    assert told("compact", "s1", "--preview")["preview"]["unseen_tokens"] == 0


def test_after_a_compaction_sizes_are_estimates(transcript):
    assert told("context", transcript)["context"]["is_reported"]
    id = told("sessions", "import", transcript)["session"]
    told("compact", id)
    assert not told("context", id)["context"]["is_reported"]


def test_a_model_can_write_the_summary(session, tmp_path):
    script = tmp_path / "script.txt"
    script.write_text("text: no\n" * 8)
    done = told("compact", "s1", "--model", f"scripted:{script}")
    entry = history()[done["entry"] - 1]
    assert entry.by == "digest"
    assert entry.usage is not None
    assert fold(history()).model == "claude-opus-4-6"


@pytest.mark.parametrize(
    ("client", "place", "command"),
    [
        ("claude-code", ".claude/projects/{dashed}/{id}.jsonl", "claude --resume {id}"),
        ("codex", ".codex/sessions/*/*/*/rollout-*-{id}.jsonl", "codex resume {id}"),
        ("pi", ".pi/agent/sessions/-{dashed}--/*_{id}.jsonl", "pi --session {id}"),
    ],
)
def test_a_client_finds_what_was_compacted_for_it(session, monkeypatch, client, place, command):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(session / "home"))
    done = told("compact", "s1", "--for", client)
    id, dashed = done["resume"].split()[-1], re.sub(r"[^A-Za-z0-9]", "-", str(session))
    if client == "pi":
        dashed = str(session).replace("/", "-")
    assert done["resume"] == f"cd {session} && {command.format(id=id)}"
    assert list((session / "home").glob(place.format(id=id, dashed=dashed))) == [Path(done["file"])]
    with open_transcript(done["file"]) as written:
        entries = list(written.entries)
    assert (written.format, written.session, written.directory) == (client, id, str(session))
    assert "Fix the login bug" in str(fold(entries).messages()[0])
    assert not [entry for entry in history() if isinstance(entry, Compacted)], "it is another one"


def test_two_places_to_write_to_are_one_too_many(session):
    done = run("compact", "s1", "--for", "pi", "--out", "x")
    assert done.exit_code == 2
    assert "leave out --out" in done.output


def test_undo_redo_and_context_say_the_same(session):
    run("compact", "s1")
    figures = [told("context", "s1")["context"]["used_tokens"]]
    for options in ((), ("--redo",)):
        done = told("undo", "s1", *options)
        assert done["before_tokens"] == figures[-1]
        figures.append(told("context", "s1")["context"]["used_tokens"])
        assert done["after_tokens"] == figures[-1]
