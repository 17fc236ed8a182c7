"""`longhold history`, run as a user runs it."""

import json
import subprocess
import sys

import pytest

from command_line import longhold
from generated_sessions import write
from longhold.core.log import Header
from longhold.core.log.entries import Cleared, Ran, Replied, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, ToolUse
from longhold.core.settings import home

BODY = "first\nthe needle\nlast"


@pytest.fixture
def session(tmp_path):
    """A session with one cleared result."""
    use = ToolUse(id="toolu_1", name="Read", input={"file_path": "/src/a.py"})
    entries = [
        Said(n=1, content=(Text(text="find it"),)),
        Replied(n=2, response_id="r", content=(use,)),
        Ran(n=3, tool_use_id="toolu_1", content=BODY),
        Cleared(n=4, ids=("toolu_1",), texts=("gone",)),
    ]
    FileStore().add(Header(session="s1", directory=str(tmp_path)), entries)
    return "s1"


def test_words_find_what_the_model_no_longer_sees(session):
    done = longhold("history", session, "needle")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "#3 result of Read toolu_1: /src/a.py (3 lines, 21 characters) line 2:\n"
        "| [calls Read, id toolu_1]\n| file_path: /src/a.py\n| first\n| the needle\n| last\n"
    )


def test_an_id_is_printed_as_it_was(session):
    assert longhold("history", session, "--id", "toolu_1").stdout == BODY
    assert longhold("history", session, "--id", "#3", "--lines", "2-").stdout == "the needle\nlast"


def test_a_file_is_found_by_its_name(session):
    found = json.loads(longhold("history", session, "file:a.py", "--json").stdout)
    assert [hit["n"] for hit in found["hits"]] == [3]
    page = json.loads(longhold("history", session, "--id", "3", "--json").stdout)
    assert (page["page"]["text"], page["page"]["of_lines"]) == (BODY, 3)


def test_looking_makes_no_directory_where_there_is_none(session):
    before = sorted(home().rglob("*"))
    longhold("history", session, "needle")
    assert sorted(home().rglob("*")) == before


def test_a_transcript_of_another_agent_is_searched_like_a_session(tmp_path):
    path = tmp_path / "session.jsonl"
    write(path, 3, 40)
    found = json.loads(longhold("history", path, "the", "--json").stdout)
    assert found["total"] > 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ([], 2, "give words to search for"),
        (["x", "--id", "3"], 2, "--id opens one record"),
        (["x", "--lines", "3"], 2, "needs --id"),
        (["--id", "nobody"], 5, "not a message or tool use"),
        (["--id", "3", "--lines", "9"], 5, "there is no line 9"),
    ],
)
def test_what_cannot_be_done_is_one_line(session, words, code, reason):
    done = longhold("history", session, *words)
    assert (done.returncode, reason in done.stderr) == (code, True)
    assert "Traceback" not in done.stderr


def test_words_alone_search_the_sessions_of_every_agent(tmp_path, session):
    path = tmp_path / ".claude" / "projects" / "p" / "b.jsonl"
    path.parent.mkdir(parents=True)
    _write_claude(path, "where is the haystack", "beside the needle, in the barn")
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    found = json.loads(longhold("history", "needle", "--json", env=env).stdout)
    assert {(hit["agent"], hit["session"]) for hit in found["hits"]} == {
        ("longhold", session),
        ("claude-code", "b"),
    }
    done = longhold("history", "needle", "--in", "claude-code", env=env)
    assert f"{path} needle" in done.stdout
    assert "#2 answer: beside the needle, in the barn" in done.stdout
    assert "s1" not in done.stdout


def test_an_error_can_be_pasted_as_the_query(session):
    done = longhold("history", "needle " + "in a stack of hay " * 20)
    assert done.returncode == 0, done.stderr
    assert "the needle" in done.stdout
    assert longhold("history", "x" * 300).returncode == 0


def test_a_full_disk_does_not_keep_words_from_being_found(tmp_path):
    texts = [" ".join(f"{n}x{word}" for word in range(400)) for n in range(40)]
    _write_claude(tmp_path / "b.jsonl", *texts)
    search = f"exec {sys.executable} -m longhold history {tmp_path} 39x399"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 60; {search}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "39x399" in done.stdout) == (0, True), done.stderr


def test_a_session_that_grew_is_found_by_its_new_words(tmp_path):
    path = tmp_path / "b.jsonl"
    _write_claude(path, "first words", "an answer")
    longhold("history", tmp_path, "first")
    before = path.read_text()
    _write_claude(path, "first words", "an answer", "later needle")
    assert path.read_text().startswith(before)
    hit = json.loads(longhold("history", tmp_path, "needle", "--json").stdout)["hits"][0]
    assert (hit["n"], hit["hit"]["snippet"]) == (3, "later needle")
    assert longhold("history", path, "--id", hit["n"]).stdout == "later needle"
    assert json.loads(longhold("history", tmp_path, "first", "--json").stdout)["total"] == 1


def test_the_index_of_all_sessions_holds_no_text(tmp_path):
    _write_claude(tmp_path / "b.jsonl", "hello", "the door is open")
    assert json.loads(longhold("history", tmp_path, "door", "--json").stdout)["total"] == 1
    assert b"the door is" not in (home() / "history.sqlite").read_bytes()


def test_a_deleted_session_is_not_found_by_its_words(session):
    assert json.loads(longhold("history", "needle", "--json").stdout)["total"] == 1
    longhold("sessions", "--delete", session, "--yes")
    assert json.loads(longhold("history", "needle", "--json").stdout)["total"] == 0
    assert b"needl" not in (home() / "history.sqlite").read_bytes()


def test_a_session_that_goes_on_under_another_name_is_listed_once(tmp_path):
    _write_claude(tmp_path / "a.jsonl", "find the needle", "found")
    _write_claude(tmp_path / "b.jsonl", "find the needle", "found", "thanks")
    assert json.loads(longhold("history", tmp_path, "needle", "--json").stdout)["total"] == 1


def test_kinds_and_files_narrow_a_search_over_all_sessions(tmp_path):
    _write_claude(tmp_path / "a.jsonl", "about the needle", "yes")
    _write_claude(tmp_path / "b.jsonl", "what is there", "a needle")
    found = json.loads(longhold("history", tmp_path, "needle kind:answer", "--json").stdout)
    assert [hit["session"] for hit in found["hits"]] == ["b"]


def _write_claude(path, *texts):
    """Write a session in which the user and the model take turns."""
    lines, parent = [], None
    for n, text in enumerate(texts):
        kind, id = ("user", "assistant")[n % 2], f"{path.stem}-{n}"
        message = {"role": kind, "content": [{"type": "text", "text": text}]}
        if kind == "assistant":
            message |= {"id": f"msg_{n}", "model": "claude-sonnet-4-5"}
        lines.append(
            {
                "type": kind,
                "uuid": id,
                "parentUuid": parent,
                "sessionId": path.stem,
                "timestamp": f"2026-01-05T10:{n:02}:00Z",
                "message": message,
            }
        )
        parent = id
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _transcript(path, *texts, title=""):
    """Write a Claude Code transcript of alternating prompts and answers."""
    records = [{"type": "summary", "summary": title, "leafUuid": "u1"}] if title else []
    for number, text in enumerate(texts, start=1):
        role = "user" if number % 2 else "assistant"
        message = {
            "role": role,
            "content": text if role == "user" else [{"type": "text", "text": text}],
        }
        if role == "assistant":
            message |= {"id": f"m{number}", "model": "claude-opus-4-5"}
        records.append(
            {"type": role, "uuid": f"u{number}", "sessionId": path.stem, "message": message}
            | {"timestamp": "2026-01-05T10:00:00Z", "cwd": "/p"}
        )
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _found(*words):
    found = json.loads(longhold("history", *words, "--json").stdout)
    return [hit["path"].rpartition("/")[2] for hit in found["hits"]]


def test_an_identifier_as_written_outranks_its_parts(tmp_path):
    _transcript(tmp_path / "exact.jsonl", "go", "calls GetSessionLog once")
    for number in range(3):
        _transcript(
            tmp_path / f"parts{number}.jsonl", "go", "get the session, then the log of the session"
        )
    assert _found(str(tmp_path), "GetSessionLog")[0] == "exact.jsonl"


def test_neighbouring_words_and_titles_outrank_scattered_words(tmp_path):
    _transcript(tmp_path / "apart.jsonl", "go", "the message says: commit it, and commit again")
    _transcript(tmp_path / "together.jsonl", "go", "the commit message is wrong")
    _transcript(tmp_path / "titled.jsonl", "go", "the commit message", title="Commit message style")
    found = _found(str(tmp_path), "commit message")
    assert found == ["titled.jsonl", "together.jsonl", "apart.jsonl"]


def test_the_users_words_outrank_the_models(tmp_path):
    _transcript(tmp_path / "asked.jsonl", "why is the parser slow?", "let me see")
    _transcript(tmp_path / "answered.jsonl", "go", "why is the parser slow?")
    assert _found(str(tmp_path), "parser slow")[0] == "asked.jsonl"


def test_an_old_codex_file_has_its_time_and_directory(tmp_path):
    records = [
        {"id": "c1", "timestamp": "2025-09-10T18:58:38.331Z", "instructions": None},
        {
            "type": "message",
            "role": "user",
            "content": [
                {
                    "type": "input_text",
                    "text": "<environment_context>\n<cwd>/home/dev/old</cwd>\n</environment_context>",
                }
            ],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "needle"}]},
    ]
    path = tmp_path / "codex.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (hit,) = json.loads(longhold("history", str(tmp_path), "needle", "--json").stdout)["hits"]
    assert (hit["session"], hit["directory"]) == ("c1", "/home/dev/old")
    assert hit["at"] > 0
