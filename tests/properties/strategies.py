"""Arbitrary entries and sequences of them, sane and insane.

Contents, ids and responses come from small pools and numbers from a small range, so that
targets are hit, missed, hit twice and hit too late about as often as each other. An entry
is one choice and three small numbers, which keeps a thousand sequences cheap to draw.
"""

from collections.abc import Iterable
from itertools import product

from hypothesis import strategies as st
from msgspec.structs import replace

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Began,
    Cleared,
    Collapsed,
    Compacted,
    Failed,
    Framed,
    Imported,
    Pinned,
    Ran,
    Redone,
    Replied,
    Restored,
    Said,
    Section,
    Snipped,
    Spilled,
    Switched,
    Titled,
    Undone,
    ViewChange,
)
from longhold.core.messages import (
    Content,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from longhold.core.messages.measure import measure_content, measure_text

MOST_STEPS = 16
"""Steps in a sequence; most bugs of a fold need three or four."""
MOST_NUMBER = 18
"""Targets go up to here, a little past the end of most sequences."""

EXTRA = {"citations": [{"n": 1}], "later": None}
IMAGE = Image(source={"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="})
OPAQUE = Opaque(raw={"type": "tomorrow", "deep": [{"1": 10**20}, None, 1.5], "": True})
THOUGHT = Thinking(thinking="weighing it", signature="c2ln", extra=EXTRA)

SPOKEN = (
    (),
    (Text(text="fix the bug"),),
    (Text(text=" \n"),),
    (Text(text="日本語 🙂\u0000", extra=EXTRA), Text(text=""), IMAGE),
    (Document(source={"type": "text", "data": "page"}), OPAQUE),
)
RESULTS = ("", "12 passed", "\t", "def f():\n    return 1", *SPOKEN)
WORDS = ("", " ", "a line", "another line")
RESPONSES = ("r1", "r2", "r3", "")
HOWS = ("rewritten", "edited", "server")
MODEL = "claude-opus-5-5"
USAGE = Usage(input_tokens=7, output_tokens=30, cache_read_tokens=900, extra={"tier": "x"})


def use(id: str) -> ToolUse:
    return ToolUse(id=id, name="read", input={"path": f"{id}.py", "limit": 3})


ANSWERS = (
    (),
    (Text(text="done"),),
    (THOUGHT,),
    (Text(text=" "), THOUGHT),
    (THOUGHT, Text(text="done", extra=EXTRA), OPAQUE),
    (RedactedThinking(data="b64"), use("a")),
    (Text(text="looking"), use("a"), use("b")),
    (THOUGHT, use("b"), THOUGHT, use("c"), THOUGHT),
    (use("a"), use("a")),
    (use("d"), OPAQUE),
)


def _measured(entry: AnyEntry) -> AnyEntry:
    """Put the true measure of its content into an entry."""
    match entry:
        case Said(content=content) | Replied(content=content) | Restored(content=content):
            measure = measure_content(content)
        case Compacted(summary=content) | Ran(content=content):
            measure = measure_content(content)
        case Spilled(text=text) | Collapsed(text=text):
            measure = measure_content(text)
        case Cleared(texts=texts):
            return replace(entry, measures=tuple(measure_content(text) for text in texts))
        case Framed(sections=sections):
            measure = measure_text("".join(section.text for section in sections))
        case _:
            return entry
    return replace(entry, measure=measure)


def _pool(*entries: AnyEntry) -> st.SearchStrategy[AnyEntry]:
    return st.sampled_from([_measured(entry) for entry in entries])


said = _pool(*(Said(content=c, hidden=h) for c, h in product(SPOKEN, (False, True))))
replied = _pool(
    *(
        Replied(response_id=r, content=c, model=m, usage=u)
        for r, c, (m, u) in product(RESPONSES, ANSWERS, (("", None), (MODEL, USAGE)))
    )
)
ran = _pool(
    *(Ran(tool_use_id=id, content=c, is_error=c == "") for id, c in product("abcd", RESULTS)),
    Ran(tool_use_id="a", content="with more", extra={"toolUseResult": 1}),
    Ran(tool_use_id="nobody asked", content="an orphan"),
)
began = _pool(*(Began(tool_use_id=id) for id in "abcd"))
bare_shapes = st.one_of(
    _pool(*(Spilled(tool_use_id=id, text=t, file="a.txt") for id, t in product("abc", WORDS))),
    _pool(
        *(Cleared(ids=(id,), texts=("gone",), how=how) for id, how in product("abc", HOWS)),
        *(Cleared(ids=("a", "c", "b"), texts=("gone", "", "too"), how=how) for how in HOWS),
        Cleared(ids=("a", "b"), texts=("gone",)),
    ),
    _pool(*(Collapsed(first=0, last=0, text=text) for text in WORDS)),
    _pool(*(Compacted(first=0, last=0, summary=content) for content in SPOKEN)),
    _pool(*(Restored(compaction=0, content=content) for content in SPOKEN[1:4])),
    _pool(Snipped(targets=())),
    _pool(*(Pinned(targets=(), on=on) for on in (True, True, False))),
)
returns = _pool(Undone(target=0), Undone(target=0), Redone(target=0))
bookkeeping = _pool(
    Asked(),
    Asked(),
    Framed(sections=(Section(name="role", text="You are careful."),), tools=({"name": "read"},)),
    Framed(),
    Switched(model="claude-sonnet-5-5"),
    Switched(model="claude-sonnet-4-5"),
    Titled(title="The login bug"),
    Failed(what="summary", error="too long", detail={"why": [None, 1]}),
    Imported(format="pi", source="a.jsonl", skipped={"label": 2}, malformed=((3, "odd"),)),
)


def _aimed(entry: AnyEntry, a: int, b: int, bits: int) -> AnyEntry:
    """Give an entry its targets; which of the numbers it uses is up to its kind and the bits."""
    match entry:
        case Undone() | Redone():
            return replace(entry, target=a)
        case Snipped() | Pinned():
            entry = replace(entry, targets=((a,), (a, b), (), (b, a))[bits & 3])
        case Collapsed() | Compacted():
            entry = replace(entry, first=a if bits & 2 else min(a, b), last=max(a, b))
        case Restored():
            entry = replace(entry, compaction=a)
    if isinstance(entry, ViewChange):
        resting = (b,) if bits == 7 else ()
        return replace(entry, drops_thinking=bool(bits & 1), rests_on=resting)
    return entry


_numbers, _bits = st.sampled_from(range(MOST_NUMBER + 1)), st.sampled_from(range(8))

shaping: st.SearchStrategy[ViewChange] = st.builds(_aimed, bare_shapes, _numbers, _numbers, _bits)
"""Entries that change the view, their targets valid or not."""

_kinds = st.one_of(said, replied, ran, began, bookkeeping)
_step = st.one_of(
    *(st.tuples(kind, _numbers, _numbers, _bits) for kind in (_kinds, bare_shapes, returns))
)


def _round(response: str, ids: str, lead: Content, given: str) -> list[AnyEntry]:
    """One answer in pieces, a piece for each tool use, with the given results between them."""
    entries: list[AnyEntry] = []
    for id in ids:
        entries.append(Replied(response_id=response, content=(*lead, use(id)), usage=USAGE))
        entries += [Ran(tool_use_id=id, content=f"result {i}") for i in range(given.count(id))]
    return [_measured(entry) for entry in entries]


_rounds = st.sampled_from(
    [
        _round(response, ids, lead, given)
        for response, ids, lead, given in product(
            RESPONSES[:2], ("a", "bc", "cad"), ((), (THOUGHT,)), ("abcd", "acc", "b")
        )
    ]
)
_round_steps = _rounds.map(lambda entries: [(entry, 0, 0, 0) for entry in entries])
_steps = st.one_of(_step.map(lambda step: [step]), _step.map(lambda step: [step]), _round_steps)


def numbered(entries: Iterable[AnyEntry], first: int = 1) -> list[AnyEntry]:
    """Number entries as a log would, and date them."""
    return [replace(entry, n=n, at=1_000.25 + n) for n, entry in enumerate(entries, first)]


def _played(steps: list[list[tuple[AnyEntry, int, int, int]]]) -> list[AnyEntry]:
    """Aim each entry, mostly at what is there by then, and number them all."""
    entries: list[AnyEntry] = []
    for entry, a, b, bits in (step for group in steps for step in group):
        shapes = [n for n, known in enumerate(entries, 1) if isinstance(known, ViewChange)]
        if isinstance(entry, Undone | Redone) and shapes and bits:
            a = shapes[a % len(shapes)]
        elif bits < 6:
            a, b = a % (len(entries) + 1), b % (len(entries) + 1)
        entries.append(_aimed(entry, a, b, bits))
    return numbered(entries)


sequences: st.SearchStrategy[list[AnyEntry]] = st.one_of(
    st.lists(_steps, max_size=4), st.lists(_steps, min_size=5, max_size=MOST_STEPS)
).map(_played)
"""Entries of all kinds, numbered from 1, their targets mostly valid."""

any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
"""Any text but lone surrogates, which no JSON can hold."""
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, width=64) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "inf" not in repr(value))
_any_object = st.dictionaries(any_text, any_json, max_size=3)
_any_blocks = st.one_of(
    st.builds(Text, text=any_text, extra=st.none() | _any_object),
    st.builds(Opaque, raw=_any_object),
    st.builds(Image, source=_any_object),
)
_any_uses = st.builds(ToolUse, id=any_text, name=any_text, input=_any_object)
any_contents: st.SearchStrategy[list[AnyEntry]] = st.lists(
    st.one_of(
        st.builds(Said, content=st.lists(_any_blocks, max_size=2).map(tuple), origin=any_text),
        st.builds(Replied, response_id=any_text, content=st.lists(_any_uses).map(tuple)),
        st.builds(Ran, tool_use_id=any_text, content=any_text, extra=st.none() | _any_object),
        st.builds(Failed, what=any_text, error=any_text, detail=any_json),
        st.builds(Framed, options=_any_object, tools=st.lists(_any_object).map(tuple)),
    ),
    max_size=4,
).map(numbered)
"""Entries whose contents are anything at all."""
