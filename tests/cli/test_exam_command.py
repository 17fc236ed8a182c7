"""`longhold exam`: questions from the log, put to a recorded summary and to the digest."""

import json
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.test_agent_commands import simulator

from command_line import longhold
from longhold.core.log import Header
from longhold.core.log.entries import Compacted, add_measure
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, ToolResult, ToolUse
from longhold.session.importing.transcript_writer import TranscriptWriter

KEY = {"ANTHROPIC_API_KEY": "sk-not-a-key"}
WANTED = "Please make split_ledger respect the size limit, and never touch the archive fixtures."
COMMAND = "pytest -q ledger"


def call(writer, n, tool, given, output, *, failed=False):
    use = ToolUse(id=f"t{n}", name=tool, input=given)
    yield writer.write_answer(f"r{n}", (use,))
    yield writer.ran(ToolResult(tool_use_id=use.id, content=output, is_error=failed))


@pytest.fixture
def session():
    """A session with a change, a commit, a verdict and an open failure, compacted at its end."""
    writer = TranscriptWriter()
    change = {"file_path": "/p/ledger.py", "old_string": "", "new_string": "def split_ledger():\n"}
    commit = "[main 3f9c2ab] Split the ledger\n 1 file changed"
    entries = [
        writer.write_message((Text(text=WANTED),)),
        *call(writer, 1, "Edit", change, "ok"),
        *call(writer, 2, "Bash", {"command": COMMAND}, "....\n41 passed in 1.2s"),
        *call(writer, 3, "Bash", {"command": "git commit -m x"}, commit),
        *call(
            writer, 4, "Bash", {"command": "make lint"}, "E501 ledger.py:7 too long", failed=True
        ),
        writer.write_answer("r5", (Text(text="The cause was the database lock of archive_sync."),)),
    ]
    summary = "The user wants split_ledger to respect the size limit; the archive fixtures stay."
    n = entries[-1].n
    entries.append(Compacted(n=n + 1, first=1, last=n, summary=(Text(text=summary),)))
    FileStore().add(Header(session="s1"), map(add_measure, entries))
    return "s1"


def test_it_asks_for_what_the_log_has(session):
    found = json.loads(longhold("exam", session, "--json").stdout)
    golds = {each["ask"]: each["gold"] for each in found["questions"]}
    assert golds['Which commit has the subject "Split the ledger"?'] == "3f9c2ab"
    assert golds[f"What did the last run of `{COMMAND}` report?"] == "41 passed in 1.2s"
    assert golds["How does `make lint` fail?"] == "E501 ledger.py:7 too long"
    assert "database lock" in golds["What was found or decided about archive_sync?"]
    kinds = {each["kind"] for each in found["questions"]}
    assert kinds == {"directive", "decision", "artifact", "fact", "state"}
    assert found["scores"]["digest"] == 1.0 > found["scores"]["recorded"] > 0
    assert found["spent"] == "nothing spent"


def test_lines_name_what_each_text_misses(session, tmp_path):
    own = tmp_path / "own.md"
    own.write_text("Commit 3f9c2ab; `pytest -q ledger`: 41 passed.")
    shown = longhold("exam", session, "--text", own).stdout
    recorded, digest, mine = shown.split(" of the tokens; it misses\n")[1:]
    assert "  artifact: Which commit has the subject" in recorded
    assert "own.md: 0." in digest and "Which commit" not in mine


def test_a_model_reads_and_grades_over_http(session, tmp_path):
    count = len(json.loads(longhold("exam", session, "--json").stdout)["questions"])
    answers = "\n".join(f"  ## {n}\n  answer {n}" for n in range(1, count + 1))
    grades = "\n".join(f"  ## {n}: {0.5 if n == 1 else 1}" for n in range(1, count + 1))
    script = tmp_path / "script.txt"
    script.write_text("\n---\n".join((f"text: So:\n{answers}", f"text: So:\n{grades}") * 2))
    words = ("exam", session, "--model", "claude-sonnet-4-6", "--json")
    with simulator("--brain", f"scripted:{script}", cwd=tmp_path) as url:
        done = longhold(*words, "--base-url", url, env=KEY)
    found = json.loads(done.stdout)
    assert found["grades"]["digest"] == [0.5] + [1.0] * (count - 1) == found["grades"]["recorded"]
    assert found["usage"]["output_tokens"] > 0 and "$" in found["spent"]
    assert "4 calls, at most about " in done.stderr and "4 of 4 calls answered" in done.stderr


def test_an_answer_that_never_comes_can_be_stopped(session, tmp_path):
    script = tmp_path / "script.txt"
    script.write_text("error: 529 retry-after=600\n---\n" * 20 + "text: x")
    with simulator("--brain", f"scripted:{script}", cwd=tmp_path) as url:
        words = ("exam", session, "--model", "claude-sonnet-4-6", "--base-url", url)
        child = subprocess.Popen(
            [sys.executable, "-m", "longhold", *words], stderr=subprocess.PIPE, text=True
        )
        child.stderr.readline()
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 130
    assert said.strip().endswith("Stopped.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--text", "missing.md"), "missing.md"),
        (("--model", "claude-sonnet-4-6"), "ANTHROPIC_API_KEY"),
    ],
)
def test_errors_say_what_to_do(session, words, said):
    done = longhold("exam", session, *words)
    assert done.returncode != 0
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_session_without_anything_to_ask_is_named():
    writer = TranscriptWriter()
    FileStore().add(Header(session="s2"), [add_measure(writer.write_message((Text(text="hi"),)))])
    assert "has nothing to ask about; name a longer session" in longhold("exam", "s2").stderr


def test_a_session_that_was_never_compacted_is_examined_whole(session):
    entries = [e for e in FileStore().load(session).entries if not isinstance(e, Compacted)]
    FileStore().add(Header(session="s3"), entries)
    found = json.loads(longhold("exam", "s3", "--json").stdout)
    assert list(found["scores"]) == ["digest"]
