"""`longhold agents`: listing, stopping, finding logs."""

import json

import pytest
from click.testing import CliRunner

from command_line import longhold
from longhold.agent.subagents.supervisor import request_file
from longhold.cli.agents_command import command
from longhold.core.log import load
from longhold.core.log.entries import Ended, Spawned
from longhold.core.log.store import FileStore


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session with one agent that ended and one that was running."""
    monkeypatch.chdir(tmp_path)
    with FileStore().create(directory=tmp_path) as log:
        log.append(Spawned(agent="explore-1", kind="explore", name="ada", task="find tests"))
        log.append(Ended(agent="explore-1", state="completed", text="in tests/"))
        log.append(Spawned(agent="general-2", task="mend it"))
        return log.header.session


def run(*words):
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_they_are_listed_with_their_state(session):
    assert run(session).output.splitlines() == [
        "explore-1 ada [explore] completed, its report not read yet: find tests",
        "general-2 [general] running: mend it",
    ]


def test_machines_get_json(session):
    first, second = json.loads(run(session, "--json").output)
    assert (first["id"], first["state"], second["state"]) == ("explore-1", "completed", "running")
    assert first["log"].endswith(f"{session}/agents/explore-1.jsonl")
    assert run(session, "--log", "ada").output.strip() == first["log"]


def test_one_is_stopped_for_good_where_nobody_runs_the_session(session):
    assert "is stopped" in run(session, "--stop", "general-2").output
    ended = load(FileStore().find(session).path).entries[-1]
    assert (ended.agent, ended.state, ended.by_user) == ("general-2", "stopped", True)
    assert not ended.is_delivered, "the model that started it is told"


def test_one_that_has_ended_is_left_as_it_is(session):
    path = FileStore().find(session).path
    before = path.read_bytes()
    assert "has ended already: completed" in run(session, "--stop", "ada").output
    assert path.read_bytes() == before
    assert "its report not read yet" in run(session).output


def test_who_runs_the_session_is_asked_to_stop_it(session):
    with FileStore().open(session):
        assert "is being stopped" in run(session, "--stop", "general-2").output
    assert (FileStore().find(session).directory / "agents" / "general-2.stop").exists()


def test_an_unknown_one_is_an_error_that_names_those_there_are(session):
    done = run(session, "--stop", "nobody")
    assert done.exit_code == 2
    assert "explore-1, general-2" in done.output


def test_one_that_is_waited_for_is_sent_to_the_background(session):
    path = FileStore().find(session).path
    request = request_file(path, "general-2", "background")
    assert (
        "general-2 continues in the background" in run(session, "--background", "general-2").output
    )
    assert request.exists()
    assert "has ended already" in run(session, "--background", "ada").output


def test_the_agents_of_another_client_s_session_are_listed(tmp_path):
    use = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {}}
    use["input"] = {"subagent_type": "Explore", "description": "Find the tests"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "In tests/."}
    path = tmp_path / "s.jsonl"
    records = [("user", "look"), ("assistant", [use]), ("user", [result])]
    with path.open("w") as file:
        for n, (kind, content) in enumerate(records):
            message = {"role": kind, "content": content, "id": f"msg_{n}", "model": "m"}
            line = {"type": kind, "uuid": f"u{n}", "sessionId": "s", "message": message}
            line["timestamp"] = f"2026-01-05T10:00:0{n}Z"
            file.write(json.dumps(line) + "\n")
    said = "#2  Explore  completed, 1 s: Find the tests\n"
    assert longhold("sessions", "agents", path).stdout == said
    id = json.loads(longhold("sessions", "import", path, "--json").stdout)["session"]
    assert longhold("sessions", "agents", id).stdout == said
