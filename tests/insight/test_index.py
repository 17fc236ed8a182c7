"""The index of all sessions: only changes are read, and each call counts once."""

import json
import os
import shutil
import sqlite3

import pytest

from command_line import longhold
from generated_sessions import write
from longhold.core.log import Header, write_log
from longhold.core.log.entries import Forked, Replied, Said, Switched
from longhold.core.messages import Text, Usage
from longhold.core.settings import home
from longhold.errors import StoreError
from longhold.insight.report import make_report
from longhold.insight.session_files import (
    default_roots,
    each_in_processes,
    find_sessions,
    worker_processes,
)
from longhold.insight.session_index import NAME, open_index

DAY = 86_400.0
JANUARY = 1_767_225_600.0
"""The first of January 2026."""


def record(kind: str, n: int, **message) -> dict:
    return {
        "type": kind,
        "uuid": f"u{n}",
        "sessionId": "s",
        "cwd": "/home/dev/shop",
        "timestamp": f"2026-01-05T10:{n:02}:00Z",
        "message": {"role": kind, **message},
    }


def answer(n: int, id: str, *, model: str = "claude-sonnet-4-5", **usage: int) -> dict:
    counts = {"input_tokens": 1_000, "output_tokens": 10} | usage
    content = [{"type": "text", "text": "ok"}]
    return record(
        "assistant", n, id=id, model=model, usage=counts, content=content, stop_reason="end_turn"
    )


def put(path, *records: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))


def totals(*roots, since: str = ""):
    with open_index() as index:
        read = index.refresh(find_sessions(roots))
        return read, make_report(index, roots, since=since)


def test_only_what_changed_is_read_again(tmp_path):
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    put(one, record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    put(other, record("user", 1, content="hi"), answer(2, "msg_0000000000000002"))
    assert totals(tmp_path)[0] == 2
    read, found = totals(tmp_path)
    assert (read, found.total.calls) == (0, 2)
    with one.open("a") as file:
        file.write(json.dumps(answer(3, "msg_0000000000000003")) + "\n")
    read, found = totals(tmp_path)
    assert (read, found.total.calls) == (1, 3)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    write(tmp_path / "one.jsonl", 1, 600)
    with (
        pytest.raises(StoreError, match=rf"{NAME}: .*full; free some space"),
        open_index() as index,
    ):
        index.rows("PRAGMA max_page_count = 1")
        index.refresh(find_sessions([tmp_path]))


def test_a_session_that_repeats_another_s_beginning_is_counted_once(tmp_path):
    begun = [record("user", 1, content="hi"), answer(2, "msg_0000000000000001")]
    put(tmp_path / "a.jsonl", *begun)
    put(tmp_path / "b.jsonl", *begun, answer(3, "msg_0000000000000002"))
    _, found = totals(tmp_path)
    assert found.total.calls == 2
    assert found.total.usd == pytest.approx(2 * (1_000 * 3 + 10 * 15) / 1e6)


def test_a_copy_elsewhere_is_reported_as_what_it_was_copied_from(tmp_path):
    begun = [record("user", 1, content="hi"), answer(2, "msg_0000000000000001")]
    one, other = tmp_path / "one", tmp_path / "other"
    put(one / "a.jsonl", *begun)
    put(one / "b.jsonl", *begun, answer(3, "msg_0000000000000002"))
    _, found = totals(one)
    shutil.copytree(one, other)
    _, copied = totals(other)
    assert copied == found
    assert copied.total.calls == totals(one, other)[1].total.calls == 2


def test_a_sub_agent_s_file_is_part_of_its_session(tmp_path):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    agent = tmp_path / "a" / "subagents" / "agent-x.jsonl"
    put(agent, record("user", 1, content="look"), answer(2, "msg_0000000000000002"))
    _, found = totals(tmp_path)
    assert (found.sessions, found.total.calls) == (1, 2)
    assert {group.name for group in found.groups["source"]} == {"conversation", "sub-agents"}
    put(agent, record("user", 1, content="look"), answer(2, "msg_02"), answer(3, "msg_03"))
    read, found = totals(tmp_path)
    assert (read, found.total.calls) == (1, 3)


def test_what_was_spent_stays_when_a_file_is_deleted(tmp_path):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    totals(tmp_path)
    (tmp_path / "a.jsonl").unlink()
    assert totals(tmp_path)[1].total.calls == 1


def test_an_index_that_is_damaged_or_of_another_make_is_built_anew(tmp_path):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    totals(tmp_path)
    file = home() / NAME
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"no database" * 100)
    assert totals(tmp_path)[0] == 1
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE stamp SET stamp = 'older'")
    connection.close()
    assert totals(tmp_path)[0] == 1
    (home() / "prices.toml").write_text('["claude-sonnet-4-5"]\ninput = 6.0\noutput = 0.0\n')
    read, found = totals(tmp_path)
    assert (read, found.total.usd) == (1, pytest.approx(0.006))


def test_many_sessions_are_read_by_several_processes(tmp_path):
    for n in range(4):
        write(tmp_path / f"{n}.jsonl", n, 20)
    sums = []
    for processes in (1, 2):
        (home() / NAME).unlink(missing_ok=True)
        with open_index() as index:
            assert index.refresh(find_sessions([tmp_path]), processes=processes) == 4
            sums.append(make_report(index, [tmp_path]).total)
    alone, apart = sums
    assert (apart.calls, apart.total_tokens) == (alone.calls, alone.total_tokens)
    assert apart.estimated_usd == pytest.approx(alone.estimated_usd)


def cached(n: int, at: float, read: int, written: int, **more) -> Replied:
    usage = Usage(cache_read_tokens=read, cache_write_tokens=written, cache_write_5m_tokens=written)
    model = more.pop("model", "claude-opus-5")
    return Replied(
        n=n,
        at=at,
        response_id=f"r{n}",
        model=model,
        content=(),
        usage=usage,
        stop_reason="end_turn",
    )


def test_avoidable_money_has_its_causes_and_remedies(tmp_path):
    said = Said(n=1, at=JANUARY, content=(Text(text="go"),))
    history = [
        said,
        cached(2, JANUARY, 0, 150_000),
        cached(3, JANUARY + 60, 150_000, 1_000),
        cached(4, JANUARY + DAY, 0, 152_000),
        cached(5, JANUARY + DAY + 60, 0, 153_000, model="claude-opus-4-8"),
    ]
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="log", directory="/home/dev/shop"), history)
    _, found = totals(path)
    assert [(loss.cause, loss.is_avoidable) for loss in found.losses] == [
        ("model", True),
        ("pause", True),
    ]
    assert found.avoidable_usd == pytest.approx(found.total.lost_usd)
    assert 0 < found.avoidable_usd < found.total.estimated_usd
    assert "Compact before a break" in found.remedies[-1].what
    assert 0 < found.remedies[-1].usd < found.losses[-1].usd


def test_advice_that_saves_less_than_a_cent_is_not_given(tmp_path):
    history = [
        Said(n=1, at=JANUARY, content=(Text(text="go"),)),
        cached(2, JANUARY, 0, 1_100),
        cached(3, JANUARY + 60, 0, 200, model="claude-haiku-4-5"),
    ]
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="log", directory="/home/dev/shop"), history)
    _, found = totals(path)
    assert 0 < found.avoidable_usd < 0.005
    assert found.remedies == ()


def test_what_the_simulator_answered_cost_nothing(tmp_path):
    history = [
        Switched(n=1, at=JANUARY, model="simulated/claude-opus-5"),
        Said(n=2, at=JANUARY, content=(Text(text="go"),)),
        cached(3, JANUARY, 0, 150_000),
        cached(4, JANUARY + DAY, 0, 150_000),
        Switched(n=5, at=JANUARY + DAY, model="claude-haiku-4-5"),
        cached(6, JANUARY + DAY + 60, 0, 150_000, model="claude-haiku-4-5"),
    ]
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="log", directory="/home/dev/shop"), history)
    _, found = totals(path)
    spent = {group.name: group.spending.estimated_usd > 0 for group in found.groups["model"]}
    assert spent == {"claude-haiku-4-5": True, "simulated/claude-opus-5": False}


def test_sessions_are_found_where_each_agent_keeps_them(tmp_path, monkeypatch):
    places = {
        "CLAUDE_CONFIG_DIR": "projects/-work-shop/a.jsonl",
        "CODEX_HOME": "sessions/2026/01/05/rollout-b.jsonl",
        "PI_CODING_AGENT_DIR": "sessions/--work-shop--/c.jsonl",
    }
    for variable, place in places.items():
        monkeypatch.setenv(variable, str(tmp_path / variable))
        put(tmp_path / variable / place, record("user", 1, content="hi"))
    spent = Forked(n=1, at=JANUARY, source="notes", usage=Usage(input_tokens=5))
    write_log(home() / "projects" / "shop" / "d.jsonl", Header(session="d"), [spent])
    names = {file.path.name for file in find_sessions(default_roots())}
    assert names == {"a.jsonl", "rollout-b.jsonl", "c.jsonl", "d.jsonl"}


def test_a_file_that_is_no_session_is_named_and_does_no_harm(tmp_path):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    (tmp_path / "notes.jsonl").write_text("nothing of the kind\n")
    odd = os.fsencode(tmp_path) + b"/caf\xe9.jsonl"
    with open(odd, "wb") as file:
        file.write((tmp_path / "a.jsonl").read_bytes())
    _, found = totals(tmp_path)
    assert found.total.calls == 1
    assert [line.partition(" ")[0].endswith("notes.jsonl") for line in found.unreadable] == [True]


def test_a_file_that_vanishes_before_it_is_read_leaves_no_trace(tmp_path):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    files = find_sessions([tmp_path])
    (tmp_path / "a.jsonl").unlink()
    with open_index() as index:
        index.refresh(files)
        assert make_report(index, [tmp_path]).unreadable == ()


@pytest.mark.parametrize("tokens", [10**40, 2**63, -(2**63)])
def test_a_count_that_no_call_can_have_does_no_harm(tmp_path, tokens):
    put(tmp_path / "a.jsonl", record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    reply = Replied(
        n=2, response_id="r", model="m", content=(), usage=Usage(input_tokens=4711, output_tokens=1)
    )
    write_log(tmp_path / "b.jsonl", Header(session="b"), [Said(n=1, content=()), reply])
    log = tmp_path / "b.jsonl"
    log.write_bytes(log.read_bytes().replace(b"4711", str(tokens).encode()))
    _, found = totals(tmp_path)
    assert found.total.calls == 1
    assert [line.endswith("an impossible token count") for line in found.unreadable] == [True]


def test_an_import_takes_nothing_from_its_original(tmp_path):
    path = tmp_path / "a.jsonl"
    put(path, record("user", 1, content="hi"), answer(2, "msg_0000000000000001"))
    longhold("sessions", "import", path)
    read, found = totals(*default_roots())
    assert (read, found.total.calls) == (1, 1)
    _, found = totals(tmp_path)
    assert found.total.calls == 1
    _, found = totals(tmp_path, *default_roots())
    assert found.total.calls == 1


SHADOWED = ("multiprocessing", "pickle", "threading", "signal", "struct", "longhold", "msgspec")


def test_no_worker_imports_a_module_of_the_current_directory(tmp_path, monkeypatch):
    """Python starts workers with `-c`, which looks there first."""
    for name in SHADOWED:
        mark = tmp_path / f"{name}.ran"
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nraise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert dict(each_in_processes(str.encode, ["a", "b"], 2)) == {"a": b"a", "b": b"b"}
    with worker_processes() as pool:
        assert pool.submit(abs, -1).result() == 1
    assert list(tmp_path.glob("*.ran")) == []
    assert "PYTHONSAFEPATH" not in os.environ
