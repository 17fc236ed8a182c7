"""A followed list after any change by its owner: the view equals that of a new import."""

import asyncio

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from longhold import Session
from longhold.core.log.entries import Rewound
from longhold.core.log.store import FileStore
from longhold.core.messages import message_to_wire
from longhold.core.messages.rules import violations
from longhold.core.settings import ClearSettings, NotesSettings, Settings, SpillSettings
from longhold.core.view import fold
from longhold.insight.transcripts.formats import read_lines
from longhold.session.dialects import DIALECTS
from seen import shown

MODEL = "claude-opus-4-6"
PLAIN = Settings(
    clear=ClearSettings(on=False), notes=NotesSettings(on=False), spill=SpillSettings(on=False)
)

words = st.sampled_from(["yes", "no", "look again", "a plan", "1 2 3", "done"])


@st.composite
def exchanges(draw, first=0):
    """A few messages that end with the user's: turns with and without tools."""
    messages = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(words)})
        for use in range(draw(st.integers(0, 2))):
            id = f"t{first}-{turn}-{use}-{draw(st.integers(0, 9))}"
            messages.append(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": draw(words)},
                        {"type": "tool_use", "id": id, "name": "Read", "input": {"n": use}},
                    ],
                }
            )
            block = {"type": "tool_result", "tool_use_id": id, "content": draw(words)}
            messages.append({"role": "user", "content": [block]})
        messages.append({"role": "assistant", "content": draw(words)})
    return [*messages, {"role": "user", "content": draw(words)}]


def cuts(messages):
    """Lengths at which a list may end: with something to answer and no call left open."""
    return [i + 1 for i, message in enumerate(messages) if message["role"] == "user"]


@st.composite
def lists(draw):
    """One list after the other, each made from the one before as owners do."""
    current = draw(exchanges())
    found = [current]
    for step in range(1, draw(st.integers(2, 7))):
        what = draw(st.sampled_from(["grow", "same", "cut", "edit", "compact", "fork", "anew"]))
        at = draw(st.sampled_from(cuts(current)))
        fresh = draw(exchanges(step))
        match what:
            case "grow":
                current = [*current, {"role": "assistant", "content": "on"}, *fresh]
            case "cut":
                current = current[:at]
            case "edit":
                plain = [i for i, m in enumerate(current) if isinstance(m["content"], str)]
                place = draw(st.sampled_from(plain))
                edited = current[place] | {"content": f"changed {step}"}
                current = [*current[:place], edited, *current[place + 1 :]]
            case "compact":
                starts = [i for i, m in enumerate(current) if m["role"] == "assistant"]
                after = [i for i in starts if isinstance(current[i - 1]["content"], str)]
                tail = current[draw(st.sampled_from(after)) :] if after else current[-1:]
                summary = {"role": "user", "content": f"summary {step}"}
                current = [summary, *tail] if after else [summary]
            case "fork":
                current = [*current[:at], {"role": "assistant", "content": "then"}, *fresh]
            case "anew":
                current = fresh
        found.append(current)
    return found


def imported(messages):
    """What a fresh import of a list shows."""
    view = fold(read_lines([msgspec.json.encode(messages)], "anthropic"))
    return [message_to_wire(message) for message in view.messages()]


async def _followed(versions, restarts):
    store = FileStore()
    session = Session.open(model=MODEL, settings=PLAIN, store=store)
    try:
        for i, messages in enumerate(versions):
            await session.follow(messages)
            assert violations(session.view.messages()) == []
            assert shown(session) == imported(messages)
            history = session.view.history
            assert [message_to_wire(m) for m in fold(history).messages()] == shown(session)
            if i in restarts:
                session._engine.log.close()  # as a killed process leaves it
                session = Session.resume(session.id, store=store)
    finally:
        session.close()
    return session


@given(lists(), st.sets(st.integers(0, 6)))
def test_the_view_is_that_of_a_fresh_import_whatever_became_of_the_list(versions, restarts):
    asyncio.run(_followed(versions, restarts))


@given(lists())
def test_a_list_that_only_grows_is_never_rewound(versions):
    grown, current = [], []
    for messages in versions:
        current = [
            *current,
            *([{"role": "assistant", "content": "so"}] if current else []),
            *messages,
        ]
        grown.append(_own_ids(current))
    session = asyncio.run(_followed(grown, set()))
    assert not any(isinstance(entry, Rewound) for entry in session.view.history)


def _own_ids(messages):
    """Give each call an id of its own, by its place."""
    made, last = [], ""
    for i, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, list):
            blocks = []
            for block in content:
                if block["type"] == "tool_use":
                    last = f"c{i}"
                    block = block | {"id": last}
                elif block["type"] == "tool_result":
                    block = block | {"tool_use_id": last}
                blocks.append(block)
            message = message | {"content": blocks}
        made.append(message)
    return made


@given(exchanges())
def test_a_message_has_one_key_in_every_dialect(messages):
    for message in messages:
        if isinstance(message["content"], str):
            keys = {dialect.hear(message, "m").key for dialect in DIALECTS.values()}
            assert len(keys) == 1
