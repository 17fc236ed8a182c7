"""Arbitrary Claude Code records: sane ones in any order, and odd ones with any field spoilt."""

from itertools import product
from typing import Any

import msgspec
from hypothesis import strategies as st

from properties.strategies import any_json

Record = dict[str, Any]

UUIDS = [f"u{i}" for i in range(8)]
TIMES = ["2026-01-05T10:00:00.000Z", "2026-01-05T10:00:00+02:00", "yesterday"]

TEXT = {"type": "text", "text": "hello"}
BLANK = {"type": "text", "text": " "}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
STRANGE = {"type": "server_tool_use", "id": "s1", "name": "web", "input": {}}


def _use(id: str) -> Record:
    return {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": f"{id}.py"}}


def _result(id: str, content: Any, **fields: Any) -> Record:
    return {"type": "tool_result", "tool_use_id": id, "content": content} | fields


SAID = ["fix it", "", [TEXT], [BLANK, TEXT, IMAGE], [], [STRANGE]]
RESULTS = [
    [_result(id, content)] for id, content in product("abc", ["", "ok", [TEXT, IMAGE], [BLANK]])
]
MORE_RESULTS = [
    [_result("a", "one"), _result("b", "two", is_error=True)],
    [_result("c", "three"), TEXT],
    [TEXT, _result("b", "four", extra_field=1)],
    [_result("nobody", "five")],
]
ANSWERS = [[TEXT], [THOUGHT], [BLANK], [STRANGE], [_use("a")], [_use("b")], [_use("c")], []]
MORE_ANSWERS = [[THOUGHT, TEXT, _use("a"), _use("b")], [TEXT, _use("a"), _use("a")]]
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 90, "output_tokens": 7, "tier": None}


def _user(content: Any) -> Record:
    return {"type": "user", "message": {"role": "user", "content": content}}


def _assistant(id: str, content: Any, usage: Any) -> Record:
    message = {"id": id, "role": "assistant", "model": "claude-opus-4-5", "content": content}
    return {"type": "assistant", "message": message | {"usage": usage}}


def _boundary(segment: Any) -> Record:
    metadata = {"trigger": "auto", "preTokens": 160_000, "preservedSegment": segment}
    return {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}


def _cleared(*ids: str) -> Record:
    metadata = {"compactedToolIds": list(ids)}
    return {
        "type": "system",
        "subtype": "microcompact_boundary",
        "microcompactMetadata": metadata,
    }


_summary = _user("a summary") | {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
_segments = [None, {"headUuid": "u1", "tailUuid": "u3"}, {"headUuid": "u5", "tailUuid": "zz"}]
_talk = [
    *map(_user, SAID),
    *map(_user, RESULTS),
    *map(_user, MORE_RESULTS),
    *(
        _assistant(id, content, usage)
        for id, content, usage in product(("m1", "m2", "m3"), ANSWERS + MORE_ANSWERS, (None, USAGE))
    ),
]
_rest = [
    *map(_boundary, _segments),
    *[_summary] * 3,
    _cleared("a"),
    _cleared("b", "nobody"),
    _user("a reminder") | {"isMeta": True},
    _user("a side note") | {"isSidechain": True},
    _user("only shown") | {"isVisibleInTranscriptOnly": True},
    {"type": "attachment", "attachment": {"type": "file", "content": "attached"}},
    {"type": "attachment", "attachment": {"type": "todo", "items": [1]}},
    _assistant("m9", [TEXT], None) | {"isApiErrorMessage": True},
    {"type": "system", "subtype": "api_error", "error": {"status": 529}},
    {"type": "system", "subtype": "stop_hook_summary"},
    {"type": "progress", "data": {}},
    {"type": "file-history-snapshot", "messageId": "u1"},
    {"type": "summary", "summary": "A title", "leafUuid": "u2"},
    {"type": "custom-title", "customTitle": "Mine"},
]


def _linked(record: Record, uuid: str, parent: str | None, time: str) -> Record:
    return record | {"uuid": uuid, "parentUuid": parent, "timestamp": time, "sessionId": "s"}


_links = (
    st.sampled_from(UUIDS),
    st.none() | st.sampled_from([*UUIDS, "gone"]),
    st.sampled_from(TIMES),
)
records: st.SearchStrategy[Record] = st.builds(
    _linked, st.sampled_from(_talk) | st.sampled_from(_rest), *_links
)


def _chained(records: list[Record]) -> list[Record]:
    """Hang each record on the one before, as an undisturbed session does."""
    uuids = [None, *(f"c{i}" for i in range(len(records)))]
    return [
        record | {"uuid": uuids[i + 1], "parentUuid": uuids[i]} for i, record in enumerate(records)
    ]


_lists = st.lists(records, max_size=4) | st.lists(records, min_size=5, max_size=16)
transcripts: st.SearchStrategy[list[Record]] = _lists | _lists.map(_chained)
"""Records that are each well formed, whatever their order and their parents."""


@st.composite
def _spoilt(draw: st.DrawFn) -> Any:
    """A record with something in it, near the top or deep down, replaced by anything."""
    record = msgspec.json.decode(msgspec.json.encode(draw(records)))
    place: Any = record
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys)) if keys else None
        if key is None:
            return record
        if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.booleans()) and isinstance(place, dict):
            del place[key]
        else:
            place[key] = draw(any_json)
        return record


odd_lines: st.SearchStrategy[list[bytes]] = st.lists(
    st.one_of(
        records.map(msgspec.json.encode),
        _spoilt().map(msgspec.json.encode),
        any_json.map(msgspec.json.encode),
        st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")),
    ),
    max_size=10,
)
"""Lines of a file that crashes, other programs and other versions have been at."""
