"""`holdfast history`, run as a user runs it."""

import json

import pytest

from command_line import holdfast
from holdfast.log import Header
from holdfast.log.entries import Cleared, Ran, Replied, Said
from holdfast.log.store import FileStore
from holdfast.messages import Text, ToolUse
from holdfast.settings import home
from holdfast.simulator.sessions import write

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
    """Each record with number, tool, file, size and the lines around the words."""
    done = holdfast("history", session, "needle")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "#3 result of Read toolu_1: /src/a.py (3 lines, 21 characters) line 2:\n"
        "| [calls Read, id toolu_1]\n| file_path: /src/a.py\n| first\n| the needle\n| last\n"
    )


def test_an_id_is_printed_as_it_was(session):
    """Whole or by lines, with nothing added, so that it can be piped."""
    assert holdfast("history", session, "--id", "toolu_1").stdout == BODY
    assert holdfast("history", session, "--id", "#3", "--lines", "2-").stdout == "the needle\nlast"


def test_a_file_is_found_by_its_name(session):
    """As JSON for machines."""
    found = json.loads(holdfast("history", session, "--file", "a.py", "--json").stdout)
    assert [hit["n"] for hit in found["hits"]] == [3]
    page = json.loads(holdfast("history", session, "--id", "3", "--json").stdout)
    assert (page["page"]["text"], page["page"]["of_lines"]) == (BODY, 3)


def test_looking_makes_no_directory_where_there_is_none(session):
    """A session without anything beside its log stays without."""
    before = sorted(home().rglob("*"))
    holdfast("history", session, "needle")
    assert sorted(home().rglob("*")) == before


def test_a_transcript_of_another_agent_is_searched_like_a_session(tmp_path):
    """Nothing needs to be imported first."""
    path = tmp_path / "session.jsonl"
    write(path, 3, 40)
    found = json.loads(holdfast("history", path, "the", "--json").stdout)
    assert found["total"] > 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ([], 2, "give words to search for"),
        (["x", "--id", "3"], 2, "--id opens a record"),
        (["x", "--lines", "3"], 2, "need --id"),
        (["--id", "nobody"], 5, "not a message or tool use"),
        (["--id", "3", "--lines", "9"], 5, "there is no line 9"),
    ],
)
def test_what_cannot_be_done_is_one_line(session, words, code, reason):
    """With an exit code by kind."""
    done = holdfast("history", session, *words)
    assert (done.returncode, reason in done.stderr) == (code, True)
    assert "Traceback" not in done.stderr
