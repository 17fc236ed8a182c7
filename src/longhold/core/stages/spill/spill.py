"""The spill stage: a tool result over its size limit goes to disk, and a preview is shown.

Each decision is an entry, so a resumed or forked session shows the same bytes. If writing fails,
the whole result stays in the context. Secrets in a preview are masked before it is cut.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from msgspec import structs

from longhold.core.log.entries import Failed, Ran, Spilled
from longhold.core.log.results import BODY_FILE_BYTES, Body
from longhold.core.messages import ResultContent, Text
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.messages.secrets import Mask, mask_secrets
from longhold.core.messages.text import byte_count, first_bytes, human_size
from longhold.core.policy.decide import CarryOut, SpaceDecision
from longhold.core.stages.space import Part
from longhold.core.stages.spill.budget import (
    Arrived,
    Budgets,
    PreviewRoom,
    find_arrived,
    is_short,
    plan_alone,
    plan_together,
)
from longhold.core.tools.describe import HISTORY, description_of
from longhold.core.turn.engine import Engine, keep_long
from longhold.core.view import View
from longhold.core.view.items import Result, Round, drop_text
from longhold.core.view.tokens import default_weights, weigh
from longhold.core.view.window import window_for
from longhold.errors import StoreError

LINE_CHARS = 200
READ_CHARS = 2_000
LINE_GUARD_CHARS = 400  # dropped at the end of a cut line, where a secret may begin
SCANNED_CHARS = 2 << 20  # twice the size up to which a command's output is kept whole

_HINT = re.compile(
    "\ne  |error|exception|fatal|panic|traceback|fail|segmentation fault|core dumped|undefined "
    "|unhandled|aborted|denied|no such file|not found|cannot|could not|killed"
)
"""Matches in every line that looks like an error. It is faster than `_ERROR`."""
_FAILURES = r"(?:errors?|fail(?:ed|ing|ures?|s)?|exceptions?)"
_ERROR = re.compile(
    rf"^E  +\S"
    rf"|(?<![\w/.-])(?:\w*error|\w*exception|{_FAILURES}|fatal|panic(?:ked)?|traceback"
    r"|segmentation fault|core dumped|undefined (?:reference|symbol|variable)|unhandled|aborted"
    r"|permission denied|no such file|not found|cannot|could not|killed)(?![\w/]|\.\w)",
    re.IGNORECASE,
)
# "2 failed, 0 errors" is an error, but "0 failed" is not.
_FINE = re.compile(
    rf"\b(?:0|no|without)\s+(?:\w+\s+)?{_FAILURES}\b"
    rf"|\b(?:tests?\s+)?{_FAILURES}\s*[:=]?\s*0\b(?![.,]\d)",
    re.IGNORECASE,
)


def error_lines(
    text: str, limit_bytes: int, first_line: int = 1, mask: Mask = str
) -> tuple[list[str], int]:
    """Find lines that look like errors. Return the first and last that fit, and the total."""
    found = list(_matching_lines(text, first_line))
    sizes = [byte_count(f"{number}: {line.strip()[:LINE_CHARS]}") + 1 for line, number in found]
    first = _count_fitting(sizes, limit_bytes if sum(sizes) <= limit_bytes else limit_bytes // 2)
    last = _count_fitting(sizes[first:][::-1], limit_bytes - sum(sizes[:first]))
    shown = found[:first] + found[len(found) - last :]
    return [f"{number}: {_cut(line, mask)}" for line, number in shown], len(found)


def _matching_lines(text: str, first_line: int) -> Iterator[tuple[str, int]]:
    text = f"\n{text[:SCANNED_CHARS]}"
    lowered = text.replace("İ", "I").lower()  # the only letter whose lower case is longer
    place, number = 0, first_line - 1
    known: set[str] = set()
    for match in _HINT.finditer(lowered):
        if match.start() < place:
            continue  # a second match in the same line
        start = text.rfind("\n", 0, match.start() + 1) + 1
        number += text.count("\n", place, start)
        end = text.find("\n", match.end())
        place = len(text) if end < 0 else end
        line = text[start : min(place, start + READ_CHARS)].strip("\r\n")
        if line not in known and _ERROR.search(_FINE.sub(" ", line)):
            known.add(line)
            yield line, number


def _cut(line: str, mask: Mask) -> str:
    seen = mask(line)
    if seen != line and len(line) >= READ_CHARS:
        seen = seen[:-LINE_GUARD_CHARS]
    return seen.strip()[:LINE_CHARS]


def _count_fitting(sizes: Iterable[int], limit_bytes: int) -> int:
    return sum(total <= limit_bytes for total in accumulate(sizes))


TAG = "spilled"
SLACK_CHARS = 8_000  # read beyond a cut so that no secret is split, not even a long private key
GUARD_CHARS = 1_000  # dropped at the end of the text read, because a secret may begin there


def preview(
    arrived: Arrived, body: Body, readers: tuple[str, ...], room: PreviewRoom, mask: Mask = str
) -> str:
    parts = [f"<{TAG} {_facts(arrived, body)}>", *_say_where(arrived, body, readers), ""]
    if arrived.is_command:
        parts += _excerpt_of_command(arrived.text, room, mask)
    else:
        head = _shown_head(arrived.text, room.preview_bytes, mask)
        parts += [f"[its first {human_size(byte_count(head))}]", _escape(head), "[…]"]
    return "\n".join([*parts, f"</{TAG}>"])


def repetition(tool_use_id: str, first: str, size_bytes: int, readers: tuple[str, ...]) -> str:
    said = f"[The same, byte for byte, as the result of {_name(first)}: {human_size(size_bytes)}"
    if HISTORY in readers:
        said += f'; should that be gone, History has it by id "{_name(tool_use_id)}"'
    return f"{said}.]"


def head_of(text: str, limit_bytes: int) -> str:
    """Return the beginning. Cut at the end of a line if that keeps more than half of the limit."""
    cut = first_bytes(text, limit_bytes)
    if len(cut) == len(text):
        return text
    line_end = cut.rfind("\n")
    return cut[:line_end] if byte_count(cut[: max(0, line_end)]) > limit_bytes // 2 else cut


def tail_of(text: str, limit_bytes: int) -> str:
    """Return the end. Cut at the start of a line if that keeps more than half of the limit."""
    if limit_bytes <= 0:
        return ""
    cut = text[-limit_bytes:].encode("utf-8", "replace")[-limit_bytes:].decode("utf-8", "ignore")
    if len(cut) == len(text):
        return text
    line_end = cut.find("\n")
    rest = cut[line_end + 1 :]
    return rest if line_end >= 0 and byte_count(rest) > limit_bytes // 2 else cut


def _excerpt_of_command(text: str, room: PreviewRoom, mask: Mask) -> list[str]:
    half = room.preview_bytes // 2
    head, tail = head_of(text, half), tail_of(text, half)
    middle = text[len(head) : len(text) - len(tail)]
    lines, count = error_lines(middle, room.error_bytes, 1 + head.count("\n"), mask)
    head, tail = _shown_head(text, half, mask), _shown_tail(text, half, mask)
    parts = [f"[its first {human_size(byte_count(head))}]", _escape(head)]
    if lines:
        which = "the" if len(lines) == count else f"{len(lines)} of the {count:,}"
        parts.append(f"[{which} lines between that look like errors, by number]")
        parts.append(_escape(first_bytes("\n".join(lines), room.error_bytes)))
    else:
        parts.append("[…]")
    return [*parts, f"[its last {human_size(byte_count(tail))}]", _escape(tail)]


def _shown_head(text: str, limit_bytes: int, mask: Mask) -> str:
    """Mask a longer text and then cut it, so that a secret at the cut is fully masked."""
    head = head_of(text, limit_bytes)
    longer = text[: len(head) + SLACK_CHARS]
    seen = mask(longer)
    if seen == longer:
        return head
    return head_of(seen if longer == text else seen[:-GUARD_CHARS], limit_bytes)


def _shown_tail(text: str, limit_bytes: int, mask: Mask) -> str:
    tail = tail_of(text, limit_bytes)
    longer = text[-(len(tail) + SLACK_CHARS) :]
    seen = mask(longer)
    if seen == longer:
        return tail
    return tail_of(seen if longer == text else seen[GUARD_CHARS:], limit_bytes)


def _facts(arrived: Arrived, body: Body) -> str:
    lines = arrived.text.count("\n") + (not arrived.text.endswith("\n"))
    facts = {
        "tool": _name(arrived.tool),
        "id": _name(arrived.id),
        "size": human_size(body.bytes),
        "lines": f"{lines:,}",
    }
    if arrived.exit_status is not None:
        facts["exit-status"] = str(arrived.exit_status)
    return " ".join(f'{key}="{value}"' for key, value in facts.items())


def _say_where(arrived: Arrived, body: Body, readers: tuple[str, ...]) -> Iterator[str]:
    what = "All of it" if body.is_whole else "As much of it as a file may hold"
    hints = []
    if reader := next((name for name in readers if name != HISTORY), ""):
        yield f"Too long to be shown here. {what} is in {body.file}"
        how = "" if description_of(reader).kind == "shell" else " by offset and limit"
        hints.append(f"{reader} shows any part of that file{how}")
    else:
        yield "Too long to be shown here."
    if HISTORY in readers:
        hints.append(f'History opens it by id "{_name(arrived.id)}"')
    if hints:
        yield "; ".join(hints) + "."


def _name(text: str) -> str:
    """Sanitise a foreign name, so that it cannot close the tag."""
    return re.sub(r"[^\w.:/@-]", "_", text)[:120]


def _escape(text: str) -> str:
    return text.replace(f"</{TAG}", f"<\\/{TAG}")


REPEAT_BYTES = 256  # a smaller result is no longer than a reference


class Repeats:
    def __init__(self) -> None:
        self._first: dict[int, str] | None = None

    def first_of(self, view: View, ran: Ran) -> Result | None:
        """Return the visible result that a new result repeats, or remember the new result."""
        if self._first is None:
            self._first = _index_results(view)
        key = key_of(ran.content)
        if key is None:
            return None
        known = _find_shown(view, self._first.get(key, ""))
        if known is None:
            self._first[key] = ran.tool_use_id
            return None
        is_same = known.content == ran.content and known.is_error == ran.is_error
        return known if is_same and known.tool_use_id != ran.tool_use_id else None


def _index_results(view: View) -> dict[int, str]:
    first: dict[int, str] = {}
    for item in view.items:
        for result in item.results if isinstance(item, Round) else ():
            if (key := key_of(result.content)) is not None:
                first.setdefault(key, result.tool_use_id)
    return first


def key_of(content: ResultContent) -> int | None:
    if isinstance(content, str):
        return hash(content)
    if not all(isinstance(block, Text) for block in content):
        return None
    return hash(tuple(block.text for block in content if isinstance(block, Text)))


def _find_shown(view: View, tool_use_id: str) -> Result | None:
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner else None
    # A reference must not lead the model to another reference.
    if result is None or result.cleared is not None:
        return None
    return None if result.spilled and result.spilled.same_as else result


@dataclass(slots=True)
class Spill(Part):
    """A session's spill layer. `arrive` takes each result, and the stage runs before each call."""

    steps = ("spill", "total")
    _repeats: Repeats = field(default_factory=Repeats)
    _refused: set[str] = field(default_factory=set)  # results that could not be written
    _lying_bytes: int | None = None  # bytes on disk, or None until counted

    def arrive(self, engine: Engine, ran: Ran) -> tuple[Ran, Spilled | Failed | None]:
        """Return a result as the log keeps it, and the entry that decides how it is shown."""
        body, kept = engine.results.shorten(ran, engine.settings)
        arrived = find_arrived(engine.view, ran)
        # The view does not have the call, so it cannot show a preview.
        if arrived is None:
            return keep_long(engine, ran)
        entry: Spilled | None = None
        # A refusal contains the user's own words.
        if engine.settings.spill.on and not ran.refused and not _is_known(engine.view, kept):
            entry = self._find_repeated(engine, arrived) if body is None else None
            if entry is None and (spilling := _plan_arrived(engine, arrived)):
                body, entry = spilling
        if body is not None:
            # If the log has only the beginning of a result, the file is the only copy and must be
            # synced.
            failed = self._keep(engine, arrived, body, is_only_copy=kept is not ran)
            if failed is not None:
                return ran, failed
        return kept, entry

    def facts(self, engine: Engine) -> dict[str, Any]:
        return {"oversized": partial(self._find_oversized, engine)}

    def _find_oversized(self, engine: Engine, together: bool) -> list[tuple[Arrived, str]]:
        if not engine.settings.spill.on or is_short(engine.view):
            return []
        plan = plan_together if together else plan_alone
        found = plan(engine.view, _budgets_of(engine))
        return [one for one in found if one[0].id not in self._refused]

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        assert isinstance(decision.plan, CarryOut)
        budgets = _budgets_of(engine)
        for arrived, why in decision.plan.subject:
            self._spill_again(engine, arrived, budgets, why)

    def _spill_again(self, engine: Engine, arrived: Arrived, budgets: Budgets, why: str) -> None:
        ran = arrived.ran
        if ran.file:  # a crash happened between the result and its preview
            try:
                content = engine.results.read(ran.file.rpartition("/")[2])
            except StoreError as error:
                engine.record(self._refuse(arrived, error))
                return
            whole = structs.replace(ran, content=content)
            arrived = find_arrived(engine.view, whole) or arrived
        spilling = _plan_spill(engine, arrived, budgets, why)
        if spilling is not None:
            body, entry = spilling
            failed = self._keep(engine, arrived, body, is_only_copy=bool(ran.file))
            engine.record(failed or structs.replace(entry, rests_on=(ran.n,)))

    def _find_repeated(self, engine: Engine, arrived: Arrived) -> Spilled | None:
        """Refer to an identical visible result if that is shorter and this one is recoverable."""
        ran, size = arrived.ran, byte_count(arrived.text)
        if size < REPEAT_BYTES:
            return None
        if not description_of(arrived.tool).is_repeatable and HISTORY not in _readers_of(engine):
            return None
        first = self._repeats.first_of(engine.view, ran)
        if first is None:
            return None
        text = repetition(ran.tool_use_id, first.tool_use_id, size, _readers_of(engine))
        if not _is_lighter(engine, measure_content(text), ran.content):
            return None
        same = f"the same {human_size(size)} as {first.tool_use_id}"
        return Spilled(
            tool_use_id=ran.tool_use_id,
            text=text,
            same_as=first.tool_use_id,
            bytes=size,
            why=f"{arrived.tool} gave {same}: not shown twice",
        )

    def _keep(
        self, engine: Engine, arrived: Arrived, body: Body, *, is_only_copy: bool
    ) -> Failed | None:
        try:
            engine.results.keep(body, is_only_copy=is_only_copy)
        except StoreError as error:
            return self._refuse(arrived, error)
        if self._lying_bytes is not None:
            self._lying_bytes += len(body.data)
        return None

    def _refuse(self, arrived: Arrived, error: StoreError) -> Failed:
        self._refused.add(arrived.id)
        size = human_size(byte_count(arrived.text))
        what = "the logged part of" if arrived.ran.file else "the whole result of"
        stays = f"{what} {arrived.tool} ({size}) stays in the context"
        return Failed(what="spill", error=f"{error}; {stays}", detail={"tool_use_id": arrived.id})

    def observe(self, engine: Engine) -> None:
        cap_bytes = engine.settings.spill.session_bytes
        # Counting reads the directory, so it happens once. `_keep` adds later files.
        if self._lying_bytes is None or self._lying_bytes > cap_bytes:
            for swept in engine.results.sweep(engine.settings.spill):
                engine.record(swept)
            self._lying_bytes = sum(file.bytes for file in engine.results.list_stored())


def _plan_arrived(engine: Engine, arrived: Arrived) -> tuple[Body, Spilled] | None:
    budgets = _budgets_of(engine)
    limit = budgets.limit_of(arrived)
    if limit is None or len(arrived.text) <= limit:
        return None
    return _plan_spill(engine, arrived, budgets, f"over its {limit:,} characters")


def _plan_spill(
    engine: Engine, arrived: Arrived, budgets: Budgets, why: str
) -> tuple[Body, Spilled] | None:
    ran, room = arrived.ran, budgets.room(has_failed=arrived.has_failed)
    body = engine.results.body(ran.tool_use_id, ran.content, cap_bytes=BODY_FILE_BYTES)
    text = preview(arrived, body, _readers_of(engine), room, mask_secrets)
    stays = drop_text(ran.content)
    measure = measure_content((Text(text=text), *stays) if stays else text)
    if not _is_lighter(engine, measure, ran.content):
        return None
    shown = human_size(byte_count(text))
    return body, Spilled(
        tool_use_id=arrived.id,
        text=text,
        file=str(body.file),
        bytes=body.bytes,
        sha256=body.sha256,
        measure=measure,
        why=f"{arrived.tool} gave {human_size(body.bytes)}, {why}: {shown} of it are shown",
    )


def _budgets_of(engine: Engine) -> Budgets:
    return Budgets(
        settings=engine.settings.spill,
        window_tokens=window_for(engine.model, engine.settings.window).limit_tokens,
        declared=engine.limits_chars,
    )


def _readers_of(engine: Engine) -> tuple[str, ...]:
    """Return the tools that can read a spilled result: a file reader or a shell, and History."""
    names = [str(tool.get("name", "")) for tool in engine.frame.tools]
    kinds = ("read", "shell") if engine.shows_paths else ()
    files = [name for kind in kinds for name in names if description_of(name).kind == kind]
    return (*files[:1], *(name for name in names if name == HISTORY))


def _is_known(view: View, ran: Ran) -> bool:
    owner = view.round_of(ran.tool_use_id)
    known = owner.result_of(ran.tool_use_id) if owner else None
    return known is not None and known.content == ran.content


def _is_lighter(engine: Engine, instead: Measure, content: ResultContent) -> bool:
    weights = default_weights(engine.model)
    return weigh(instead, weights) < weigh(measure_content(content), weights)
