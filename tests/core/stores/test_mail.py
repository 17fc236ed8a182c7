"""Mail between sessions of a store: once, in order, as data, on any machine."""

import threading

import msgspec
import pytest

from longhold.agent.subagents.ledger import Delivery
from longhold.agent.subagents.mail import Mail, Note, ShutdownRequest
from longhold.agent.subagents.mailer import Around, Mailer, Unsent
from longhold.core.log.entries import Failed, Said
from longhold.core.messages import text_of
from longhold.core.settings import Settings, StoreSettings
from longhold.core.turn.engine import Engine

pytest.importorskip("psycopg", reason="psycopg is not installed")

from longhold.core.log.stores.postgres import PostgresStore


@pytest.fixture
def nodes(postgres_url, tenant, tmp_path):
    """Two nodes' stores, and a session on each: `sender` and `reader`."""
    opened = [PostgresStore(postgres_url, StoreSettings(tenant=tenant)) for _ in range(2)]
    logs = [
        store.create(directory=tmp_path, session=id)
        for store, id in zip(opened, ("sender", "reader"), strict=True)
    ]
    yield opened, logs
    for one in (*logs, *opened):
        one.close()


async def not_resumed(id):
    raise AssertionError(id)


def mailer(log, tmp_path) -> Mailer:
    return Mailer(
        session=log.header.session,
        directory=tmp_path,
        around=lambda: Around(me="main"),
        resume=not_resumed,
        stored=log.mail,
    )


def heard(engine) -> list[str]:
    words = (text_of(one.content) for one in engine.view.history if isinstance(one, Said))
    return [text.split("| ", 1)[1].split("\n")[0] for text in words]


async def test_mail_reaches_a_session_of_another_node_once_and_in_order(nodes, tmp_path):
    (here, _), (sender, reader) = nodes
    send = mailer(sender, tmp_path).send
    for word in ("one", "two"):
        for _ in range(2):
            assert "reader" in await send("session:reader", Note(text=word), id=word)
    engine = Engine(reader, Settings())
    deliver = Delivery(tmp_path / "main.jsonl", stored=reader.mail)
    assert deliver.waiting_lines(engine) == ["mail from main", "mail from main"]
    await deliver(engine)
    await deliver(engine)
    assert heard(engine) == ["one", "two"]
    await send("session:reader", Note(text="three"), id="three")
    reader.close()
    with here.open("reader") as moved:
        engine = Engine(moved, Settings())
        await Delivery(tmp_path / "main.jsonl", stored=moved.mail)(engine)
        assert heard(engine) == ["one", "two", "three"]
        assert all(one.hidden for one in engine.view.history if isinstance(one, Said))


async def test_what_cannot_be_sent_says_why(nodes, tmp_path):
    _, (sender, _) = nodes
    send = mailer(sender, tmp_path).send
    with pytest.raises(Unsent, match="there is no session 'nobody'"):
        await send("session:nobody", Note(text="hi"))
    with pytest.raises(Unsent, match="that is this session"):
        await send("session:sender", Note(text="hi"))


@pytest.mark.parametrize(
    "body",
    [
        b"not a mail",
        msgspec.json.encode(
            Mail(
                id="x",
                sender="main",
                to="main",
                session="sender",
                body=ShutdownRequest(request_id="r"),
            )
        ),
        msgspec.json.encode(Mail(id="x", sender="main", to="main", body=Note(text="unsigned"))),
    ],
)
async def test_only_signed_notes_are_taken(nodes, body, tmp_path):
    _, (sender, reader) = nodes
    sender.mail.send("reader", "odd", body)
    good = Mail(id="y", sender="main", to="main", session="sender", body=Note(text="good"))
    sender.mail.send("reader", "good", msgspec.json.encode(good))
    engine = Engine(reader, Settings())
    deliver = Delivery(tmp_path / "main.jsonl", stored=reader.mail)
    await deliver(engine)
    await deliver(engine)
    assert len([one for one in engine.view.history if isinstance(one, Failed)]) == 1
    assert heard(engine) == ["good"]


def test_mail_of_many_senders_at_once_is_neither_lost_nor_skipped(nodes):
    _, (sender, reader) = nodes
    senders = [
        threading.Thread(
            target=lambda name=name: [
                sender.mail.send("reader", f"{name}-{n}", b"x") for n in range(40)
            ]
        )
        for name in range(4)
    ]
    for one in senders:
        one.start()
    seen: list[int] = []
    cursors: dict[str, int] = {}
    while len(seen) < 160:
        for cursor, _ in reader.mail.after(cursors):
            box, _, place = cursor.rpartition(":")
            cursors[box] = int(place)
            seen.append(int(place))
    for one in senders:
        one.join()
    assert seen == sorted(set(seen))
    assert reader.mail.after(cursors) == []


def test_mail_never_reaches_another_tenant(nodes, postgres_url):
    _, (sender, reader) = nodes
    other = PostgresStore(postgres_url, StoreSettings(tenant="another"))
    with other.create(directory=reader.path.parent, session="reader") as theirs:
        sender.mail.send("reader", "k", b"secret")
        assert theirs.mail.after({}) == []
    other.delete("reader")
    other.close()
    assert len(reader.mail.after({})) == 1
