"""Code that reads sessions as files gets local copies from a database."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from contextlib import closing

import pytest

from command_line import longhold
from lazy import needs
from longhold import Session
from longhold.core.log.store import FileStore
from stored_talk import LONG, MODEL, reply, talked

needs("psycopg")


def spoken(store, directory, id: str, text: str, answer: str = "Noted.") -> None:
    """Hold a session of one turn, or go on with it."""

    async def turn() -> None:
        is_new = id not in [one.id for one in store.sessions()]
        session = (
            Session.open(model=MODEL, id=id, directory=directory, store=store)
            if is_new
            else Session.resume(id, store=store, directory=directory)
        )
        async with session:
            session.user(text)
            await session.prepare()
            said = {"type": "text", "text": answer}
            await session.record(reply(f"msg_{id}_{text[:12]}", said))

    asyncio.run(turn())


def reported(*words: str) -> dict:
    done = longhold("report", "--since", "all", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_report_counts_the_sessions_of_a_database(database, tmp_path):
    spoken(database, tmp_path, "one", "The first harvest.")
    spoken(FileStore(), tmp_path, "elsewhere", "In a file.")
    assert (reported()["sessions"], reported()["total"]["calls"]) == (1, 1)
    spoken(database, tmp_path, "one", "The second harvest.")
    spoken(database, tmp_path, "two", "Another one.")
    assert (reported()["sessions"], reported()["total"]["calls"]) == (2, 3)


def test_all_sessions_of_a_database_are_searched(database, tmp_path):
    asyncio.run(talked(database, tmp_path, "talk", turns=1))
    spoken(database, tmp_path, "other", "The barley is for the brewery.")
    found = json.loads(longhold("history", "barley brewery", "--json").stdout)
    assert [hit["session"] for hit in found["hits"]] == ["other"]
    spoken(database, tmp_path, "other", "The quinces are for the cook.")
    (hit,) = json.loads(longhold("history", "quinces", "--in", "longhold", "--json").stdout)["hits"]
    assert "quinces are for the cook" in hit["hit"]["snippet"]
    (hit,) = json.loads(longhold("history", "harvest plan", "--json").stdout)["hits"]
    opened = longhold("history", hit["path"], "--id", "t0", "--lines", "3999")
    assert LONG.splitlines()[3998] in opened.stdout
    both = json.loads(longhold("history", "talk", "other", "quinces", "--json").stdout)
    assert [hit["session"] for hit in both["hits"]] == ["other"]


def test_a_copy_goes_with_its_session(database, tmp_path):
    spoken(database, tmp_path, "one", "The first harvest.")
    copied = database.files().find("one").path
    assert copied.exists()
    database.delete("one")
    assert not database.files().sessions()
    assert not copied.exists()


def test_copies_are_what_the_database_has(database, tmp_path):
    for number in range(4):
        spoken(database, tmp_path, "one", f"Harvest {number}.")
        assert database.files().load("one").entries == database.load("one").entries
        before = database.files().find("one").path.stat()
        assert database.files("one").find("one").path.stat().st_mtime_ns == before.st_mtime_ns
    assert database.files().load("one").header == database.load("one").header


def test_a_session_in_a_database_is_served(database, tmp_path):
    asyncio.run(talked(database, tmp_path, "talk", turns=2))
    words = [sys.executable, "-m", "longhold", "serve", "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = "".join(iter(process.stdout.readline, "}\n")) + "}"
            address = json.loads(printed)["address"]

            def get(path: str, **asked: object) -> str:
                query = urllib.parse.urlencode(asked)
                with closing(urllib.request.urlopen(f"{address}{path}?{query}", timeout=60)) as it:
                    return it.read().decode()

            page = get("")
            data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
            listed = data["sessions"]
            (id,) = listed["id"]
            assert listed["calls"] == [4]
            assert "Part 1 is ripe." in get("api/session", session=id)
            n = next(
                one.n for one in database.load("talk").entries if one.__class__.__name__ == "Ran"
            )
            assert (
                "line 3999 of a long file" in json.loads(get("api/text", session=id, n=n))["text"]
            )
        finally:
            process.send_signal(signal.SIGINT)
        process.wait(60)


async def test_a_client_asks_about_a_session_in_a_database(database, tmp_path):
    mcp = pytest.importorskip("mcp")
    from mcp.client.stdio import StdioServerParameters, stdio_client

    await talked(database, tmp_path, "talk", turns=1)
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "longhold", "mcp"], env=dict(os.environ)
    )
    async with mcp.Client(stdio_client(command)) as client:

        async def call(name: str, **given: str) -> str:
            found = await client.call_tool(name, given)
            return "".join(block.text for block in found.content)

        assert "ripe" in await call("search_history", query="ripe")
        assert "line 3999 of a long file" in await call("expand", id="t0", lines="3990-4000")
        assert "harvest plan" in await call("notes")
        async with Session.resume("talk", store=database, directory=tmp_path) as session:
            session.user("And the quinces?")
            await session._engine.log.wait_for_commit()
            assert "And the quinces?" in await call("search_history", query="quinces")
