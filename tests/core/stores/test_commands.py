"""The same commands work on files and on a database."""

import asyncio
import json

from command_line import longhold
from lazy import LazyModule, needs
from longhold.core.log.entries import Compacted, Said, Spawned, Undone
from longhold.core.log.store import FileStore
from longhold.core.messages import Text
from stored_talk import talked

needs("psycopg")
psycopg = LazyModule("psycopg")

from longhold.core.log.stores.postgres import PostgresStore  # noqa: E402
from longhold.core.settings import StoreSettings  # noqa: E402


def test_commands_read_and_change_a_session_in_a_database(database, tmp_path):
    id = asyncio.run(talked(database, tmp_path))
    (listed,) = json.loads(longhold("sessions", "--json").stdout)
    assert (listed["id"], listed["title"][:14]) == (id, "Look at part 0")
    assert "spilled" in longhold("explain", id).stdout
    assert json.loads(longhold("cost", id, "--json").stdout)
    assert "Bash" in longhold("context", "newest").stdout
    assert "line 3999 of" in longhold("history", id, "3999").stdout
    exported = json.loads(longhold("sessions", "export", id).stdout)
    assert len(exported["messages"]) == 24
    done = longhold("compact", id)
    assert done.returncode == 0, done.stderr
    assert any(isinstance(one, Compacted) for one in database.load(id).entries)
    done = longhold("undo", id)
    assert done.returncode == 0, done.stderr
    assert any(isinstance(one, Undone) for one in database.load(id).entries)
    assert json.loads(longhold("sessions", "export", id).stdout)["messages"] == exported["messages"]
    branched = json.loads(longhold("sessions", "--branch", id, "--json").stdout)["branched"]
    assert longhold("sessions", "--delete", branched, "--yes").returncode == 0
    assert [found.id for found in database.sessions()] == [id]
    assert not FileStore().sessions()


def test_notes_are_shown_and_edited_over_a_database(database, tmp_path):
    id = asyncio.run(talked(database, tmp_path))
    made = json.loads(longhold("sessions", "notes", id, "--json").stdout)
    assert (made["session"], made["is_kept"]) == (id, bool(database.beside(id).get("notes.md")))
    editor = {"EDITOR": "sed -i 's/^## Task$/## Task\\nMind the reef./'", "VISUAL": ""}
    done = json.loads(longhold("sessions", "notes", id, "--edit", "--json", env=editor).stdout)
    assert done["is_kept"]
    assert "Mind the reef." in database.beside(id)["notes.md"].decode()
    assert "harvest plan" in database.beside(id)["notes.md"].decode()
    assert "harvest plan" in longhold("sessions", "notes", id).stdout
    with database.open(id):
        assert "harvest plan" in longhold("sessions", "notes", id).stdout
        assert "is being written by" in longhold("sessions", "notes", id, "--edit").stderr


def test_agents_are_reached_over_a_database(database, tmp_path):
    with database.create(directory=tmp_path, session="s") as log:
        log.append(Spawned(agent="a-1", kind="general", task="look on"))
        with log.agent("a-1").open(log.header, directory=str(tmp_path), at=1) as own:
            own.append(Said(content=(Text(text="Look on at the harvest."),)))
    assert "a-1" in longhold("explain", "s").stdout
    assert "the harvest" in longhold("explain", "s/a-1").stdout
    assert "the harvest" in longhold("history", "s/a-1", "harvest").stdout
    assert "s/a-2 does not exist" in longhold("explain", "s/a-2").stderr


def test_a_session_in_a_database_is_written_as_a_page(database, tmp_path):
    id = asyncio.run(talked(database, tmp_path, turns=2))
    done = longhold("inspect", id, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "Part 1 is ripe." in (tmp_path / "page.html").read_text()


def test_an_opened_body_comes_from_the_database(database, tmp_path):
    id = asyncio.run(talked(database, tmp_path, turns=1))
    opened = longhold("history", id, "--id", "t0", "--lines", "3990-4000")
    assert "line 3995 of a long file" in opened.stdout, opened


def test_a_transcript_is_imported_into_a_database(database, tmp_path):
    file = tmp_path / "list.json"
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Good day."},
    ]
    file.write_text(json.dumps({"messages": messages}))
    first = json.loads(longhold("sessions", "import", file, "--json").stdout)
    assert "hello" in longhold("sessions", "export", first["session"]).stdout


def test_sessions_move_either_way_and_lose_nothing(
    database, postgres_url, tenant, tmp_path, monkeypatch
):
    id = asyncio.run(talked(database, tmp_path))
    there, back = tmp_path / "there", f"{tenant}-back"
    done = json.loads(longhold("sessions", "copy", "default", there, "--json").stdout)
    assert done == {"copied": [id], "there_already": []}
    files = FileStore(there)
    monkeypatch.setenv("LONGHOLD_STORE_TENANT", back)
    assert longhold("sessions", "copy", there, postgres_url, id).returncode == 0
    again = json.loads(longhold("sessions", "copy", there, postgres_url, "--json").stdout)
    assert again == {"copied": [], "there_already": [id]}
    returned = PostgresStore(postgres_url, StoreSettings(tenant=back))
    for store in (files, returned):
        assert store.load(id).entries == database.load(id).entries
        assert store.load(id).header == database.load(id).header
        assert store.beside(id) == database.beside(id)
        assert store.title(store.find(id)) == database.title(database.find(id))
    assert database.beside(id)
    returned.close()
    assert longhold("sessions", "check", there).returncode == 0


def test_a_store_is_not_copied_to_itself(database, postgres_url):
    done = longhold("sessions", "copy", "default", postgres_url)
    assert done.returncode == 2
    assert "LONGHOLD_STORE" in done.stderr


def test_a_check_finds_bodies_that_are_missing_or_changed(database, postgres_url, tmp_path):
    id = asyncio.run(talked(database, tmp_path, turns=1))
    assert "1 session read, 0 with problems" in longhold("sessions", "check").stdout
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        change = "UPDATE longhold.bodies SET body = 'x' WHERE session = %s"
        connection.execute(change, (database._key(id)[0],))
        found = longhold("sessions", "check")
        assert found.returncode == 1
        assert "differs from what was written" in found.stdout
        connection.execute(
            "DELETE FROM longhold.bodies WHERE session = %s", (database._key(id)[0],)
        )
    assert "t0.txt is missing" in longhold("sessions", "check").stdout


def test_migrations_can_be_looked_at_first(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE looked_at")
    url = postgres_url.replace("/postgres?", "/looked_at?")
    shown = longhold("sessions", "migrate", url, "--show")
    assert "CREATE TABLE longhold.sessions" in shown.stdout
    assert longhold("sessions", "migrate", url, "--show").stdout == shown.stdout
    assert longhold("sessions", "migrate", url).returncode == 0
    assert longhold("sessions", "migrate", url, "--show").stdout == ""


def test_what_migrate_shows_is_all_that_has_to_run(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE by_hand")
    url = postgres_url.replace("/postgres?", "/by_hand?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(longhold("sessions", "migrate", url, "--show").stdout)
    assert "0 migrations done" in longhold("sessions", "migrate", url).stdout
    assert longhold("sessions", "check", url).returncode == 0


def test_a_migration_needs_a_database():
    done = longhold("sessions", "migrate")
    assert done.returncode == 2
    assert "LONGHOLD_STORE" in done.stderr


def test_old_sessions_are_removed_once_the_archive_has_them(database, tmp_path):
    id, archive = asyncio.run(talked(database, tmp_path)), tmp_path / "archive"
    loaded, beside = database.load(id), database.beside(id)
    with database.create(directory=tmp_path, session="new") as log:
        log.append(Said(content=(Text(text="kept"),)))
    words = ["sessions", "--prune", "--yes", "--json", "--archive", str(archive)]
    kept = FileStore(archive)
    kept.add(loaded.header, loaded.entries[:-1])  # another session of this id, or a cut copy
    ages(database, id)
    done = longhold(*words)
    assert json.loads(done.stdout)["removed"] == []
    assert f"not removed: {id}" in done.stderr
    kept.delete(id)
    assert json.loads(longhold(*words).stdout)["removed"] == [id]
    assert [one.id for one in database.sessions()] == ["new"]
    archived = kept.load(id)
    assert (archived.header, archived.entries) == (loaded.header, loaded.entries)
    assert kept.beside(id) == beside
    assert longhold("sessions", "copy", str(archive), "default", id).returncode == 0
    assert database.load(id).entries == loaded.entries


def ages(store, id):
    """Make a session older than any retention."""
    query = "UPDATE longhold.sessions SET modified = now() - interval '1 year' WHERE id = %s"
    store._database.run(lambda connection: connection.execute(query, (id,)))
