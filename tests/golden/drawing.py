"""Draws a log and the view folded from it, before and after a few entries, as a diff.

Lines with `+` are only in the later state, lines with `-` only in the earlier one. Names that
differ from run to run are replaced, and figures that depend on the length of a path have a `~`.
"""

import difflib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Began,
    CacheBroke,
    Cleared,
    Compacted,
    Forked,
    Framed,
    Noted,
    Ran,
    Replied,
    Restored,
    Said,
    Spilled,
    Switched,
    Undone,
)
from longhold.core.messages import Text, ToolResult, ToolUse, Usage, text_of
from longhold.core.view import View
from longhold.core.view.gauge import Follower
from longhold.simulator import BrainRequest

LINE_CHARS = 96
LONG_CHARS = 200
"""Of a text that is longer, the page says how long it is."""
CONTEXT_ENTRIES, CONTEXT_LINES = 2, 2
"""What is shown of the log, and of the view, before the first that is new."""

_SCRUBBED = (
    (r"/[^\s\"]*?/shop(?=/)", "/shop"),
    (r"toolu_[0-9a-f]{24}", "toolu_…"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-01-01 12:00"),
    (r"\S*/projects/[^/\s]+/[\w-]+(?=[/.])", "~/.longhold/projects/shop/SESSION"),
    (r"(?<![\w~])\$?[\d,.]*\d(?= tokens)", r"~\g<0>"),
    (r"(?<!~)\$[\d.]*\d", r"~\g<0>"),
    (r"(?<=about )(?=\d)", "~"),
)


def scrub(text: str) -> str:
    """Take out of a text what differs from run to run."""
    for pattern, plain in _SCRUBBED:
        text = re.sub(pattern, plain, text)
    return text


def ordered(entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Put the end of an answer behind its results; which of them comes first is chance."""
    sorted_: list[AnyEntry] = []
    waiting: AnyEntry | None = None
    for entry in entries:
        if isinstance(entry, Replied) and not entry.content:
            waiting = entry
            continue
        if waiting is not None and not isinstance(entry, Began | Ran | Spilled):
            sorted_.append(waiting)
            waiting = None
        sorted_.append(entry)
    return sorted_ + ([waiting] if waiting is not None else [])


@dataclass
class Drawing:
    """One log, drawn piece by piece."""

    entries: Sequence[AnyEntry]
    _numbers: dict[int, int] = field(default_factory=dict)
    _tools: dict[str, str] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)
    """How many tokens the view had after each entry, as the gauge had it then."""

    def __post_init__(self) -> None:
        self.entries = ordered(self.entries)
        self._numbers = {entry.n: at for at, entry in enumerate(self.entries, 1)}
        self._tools = {
            block.id: block.name
            for entry in self.entries
            if isinstance(entry, Replied)
            for block in entry.content
            if isinstance(block, ToolUse)
        }
        view, follower = View(), Follower()
        for entry in sorted(self.entries, key=lambda entry: entry.n):
            view.apply(entry)
            self._sizes[entry.n] = follower.follow(view).size_tokens(view.total)

    def step(self, first: int, last: int) -> str:
        """Draw what entries `first` to `last` did, counted from one."""
        lines = ["LOG", *self._log(first, last), "", self._title(first - 1, last)]
        return "\n".join((*lines, *_diff(self._view(first - 1), self._view(last))))

    def _log(self, first: int, last: int) -> Iterator[str]:
        """Yield some entries as new ones, behind the ones just before them."""
        shown = max(0, first - 1 - CONTEXT_ENTRIES)
        if shown:
            yield "  …"
        for at, entry in enumerate(self.entries[shown:last], shown + 1):
            mark = "+" if at >= first else " "
            yield from (f"{mark} {line}" for line in self._lines(entry))
        if first > last:
            yield "  (as before)"

    def _title(self, before: int, after: int) -> str:
        was, is_ = self._tokens(before), self._tokens(after)
        return f"VIEW  ~{was:,} -> ~{is_:,} tokens"

    def _folded(self, count: int) -> View:
        view = View()
        for entry in sorted(self.entries[:count], key=lambda entry: entry.n):
            view.apply(entry)
        return view

    def _tokens(self, count: int) -> int:
        latest = max((entry.n for entry in self.entries[:count]), default=0)
        return round(self._sizes.get(latest, 0), -1)

    def _view(self, count: int) -> list[str]:
        view = self._folded(count)
        frame = ["(frame)     " + _frame(view.frame)] if view.frame else []
        return frame + [
            _cut(f"{message.role:<11} {self._block(block)}")
            for message in view.messages()
            for block in message.content
        ]

    def _block(self, block: object) -> str:
        match block:
            case Text(text=text):
                return _quoted(text)
            case ToolUse(name=name, input=input):
                return f"{name} {_given(input)}"
            case ToolResult(tool_use_id=id, content=content):
                return f"result of {self._tools[id]}: {_quoted(text_of(content))}"
        return type(block).__name__

    def _lines(self, entry: AnyEntry) -> list[str]:
        """Write an entry as a line, or as two where it has much to say."""
        head = f"{self._numbers[entry.n]:>3} {type(entry).__name__.lower():<10} "
        text = scrub(" ".join(self._said_of(entry).split()))
        return textwrap.wrap(
            head + text, LINE_CHARS, subsequent_indent=" " * len(head), break_on_hyphens=False
        )

    def _said_of(self, entry: AnyEntry) -> str:
        match entry:
            case Switched(model=model):
                return model
            case Framed():
                return _frame(entry)
            case Said(content=content):
                return _quoted(text_of(content))
            case Asked(chain_length=length):
                return f"{_counted(length, 'message')}, a marker after the last"
            case Replied(content=content, stop_reason=stop, usage=usage):
                blocks = [self._block(block) for block in content]
                return "; ".join((*blocks, *_ending(stop, usage)))
            case Began(tool=tool):
                return tool
            case Ran(tool_use_id=id, content=content):
                return f"{self._tools[id]}: {_quoted(text_of(content))}"
        return self._did(entry)

    def _did(self, entry: AnyEntry) -> str:
        match entry:
            case Spilled(tool_use_id=id, bytes=size):
                return f"{self._tools[id]}: {size:,} bytes to disk, a preview remains"
            case Cleared(ids=ids, why=why):
                return f"{', '.join(self._tools[id] for id in ids)}: {why}"
            case Compacted(first=first, last=last, why=why):
                return f"{self._numbers[first]} to {self._numbers[last]}: {why}"
            case Restored(content=content):
                return _quoted(text_of(content))
            case Forked(source=source, usage=usage):
                return f"by {source}: {_usage(usage)}"
            case Noted(cursor=cursor, by=by):
                return f"notes.md, up to {self._numbers[cursor]}, by the {by}"
            case CacheBroke(lost_tokens=lost, expected=expected):
                return f"{lost:,} tokens not read; expected: {expected}"
            case Undone(target=target):
                return f"{self._numbers[target]}"
        return ""


def draw_request(request: BrainRequest) -> str:
    """Draw a request as it was on the wire: its parts in the order of the prefix, and its markers."""
    rows: list[tuple[str, Mapping[str, object]]] = [
        ("tools       " + ", ".join(str(tool["name"]) for tool in request.tools), {}),
        *((f"system      {_quoted(str(block['text']))}", block) for block in request.system),
    ]
    for message in request.messages:
        rows += [
            (f"{message['role']:<11} {_on_wire(block)}", block) for block in message["content"]
        ]
    return "\n".join(
        f"{_cut(row, LINE_CHARS - 10):<{LINE_CHARS - 10}}{'  <- marker' if 'cache_control' in block else ''}".rstrip()
        for row, block in rows
    )


def _on_wire(block: Mapping[str, object]) -> str:
    match block["type"]:
        case "text":
            return _quoted(str(block["text"]))
        case "tool_use":
            return f"{block['name']} {_given(block['input'])}"
    content = block["content"]
    parts = content if isinstance(content, list) else [{"text": content}]
    return f"result: {_quoted(''.join(str(part.get('text', '')) for part in parts))}"


def _frame(frame: Framed) -> str:
    return f"system prompt, {len(frame.tools)} tools, cached for {frame.lifetime}"


def _given(input: Mapping[str, object]) -> str:
    return str(next(iter(input.values()))).strip()


def _quoted(text: str) -> str:
    """Quote the beginning of a text, and say how long it is if that is long."""
    text = scrub(text)
    size = f" ({len(text):,} characters)" if len(text) > LONG_CHARS else ""
    room = 58 - len(size)
    line = " ".join(text.split())
    return f'"{line[:room].rstrip()}…"{size}' if len(line) > room else f'"{line}"{size}'


def _cut(line: str, limit: int = LINE_CHARS) -> str:
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _ending(stop: str, usage: Usage | None) -> Iterator[str]:
    if usage is not None:
        yield f"{stop}: {_usage(usage)}"


def _usage(usage: Usage) -> str:
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    return (
        f"{usage.prompt_tokens:,} tokens, {_about(read)} from the cache, {_about(written)} written"
    )


def _about(count: int) -> str:
    return f"~{count:,}" if count else "none"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _diff(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield the lines of both, with what is far from any change left out."""
    if before == after:
        yield "  (as before)"
        return
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            kept = [f"  {line}" for line in before[a:b]]
            yield from (
                kept if len(kept) <= CONTEXT_LINES + 1 else _elided(kept, a == 0, b == len(before))
            )
        else:
            yield from (f"- {line}" for line in before[a:b])
            yield from (f"+ {line}" for line in after[c:d])


def _elided(kept: Sequence[str], is_first: bool, is_last: bool) -> Iterator[str]:
    head = () if is_first else kept[:1]
    tail = () if is_last and not is_first else kept[-CONTEXT_LINES:]
    yield from head
    yield "  …"
    yield from tail
