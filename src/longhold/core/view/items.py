"""The items of a view: user messages and rounds.

A round is one answer with the results of its tool calls, so a cut between items cannot separate
them. Items have two renderings: `sent` is in the request, and `seen` is what the model reads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, overload

from msgspec import Struct, field, structs

from longhold.core.log.entries import Cleared, How, Ran
from longhold.core.messages import (
    Block,
    Content,
    Document,
    Image,
    JsonObject,
    Message,
    Opaque,
    ResultContent,
    Text,
    ToolResult,
    ToolUse,
    Usage,
    is_blank,
    is_thought,
)
from longhold.core.messages.measure import NOTHING, Measure, measure_content

Projection: TypeAlias = Literal["sent", "seen"]

NO_RESULT = "No result is recorded: the tool may still be running, or have been interrupted."
"""Replaces a missing result, because every tool use needs one."""

CLEARED_RESULT = "A result stood here and was taken out to make room."
"""Replaces a result that was cleared or spilled without a placeholder."""

EMPTY_RESULT = "{tool} finished without output."  # some models take an empty result as the end


class Spoken(Struct, frozen=True, kw_only=True, gc=False):
    id: int
    order: int
    content: Content
    kind: Literal["said", "summary", "line", "restored", "late"] = "said"
    hidden: bool = False
    measure: Measure = NOTHING

    def is_asked(self) -> bool:
        """Whether this is a user message, which may expect an answer."""
        return self.kind == "said" and not self.hidden

    def fragments(self, projection: Projection) -> Iterator[Message]:
        content = tuple(block for block in self.content if not is_blank(block))
        if content:
            yield Message("user", content)


class StandIn(Struct, frozen=True, kw_only=True, gc=False):
    text: str
    how: How | Literal["spilled"]
    measure: Measure = NOTHING
    same_as: str = ""  # the tool use whose result this one repeats


def stand_ins(entry: Cleared) -> dict[str, StandIn]:
    measures = entry.measures or (NOTHING,) * len(entry.ids)
    return {
        id: StandIn(text=text, how=entry.how, measure=measure)
        for id, text, measure in zip(entry.ids, entry.texts, measures, strict=False)
    }


class Result(Struct, frozen=True, kw_only=True, gc=False):
    id: int
    tool_use_id: str
    content: ResultContent
    is_error: bool = False
    refused: str | None = None
    extra: JsonObject | None = None
    measure: Measure = NOTHING
    spilled: StandIn | None = None
    cleared: StandIn | None = None

    @classmethod
    def of(cls, entry: Ran) -> "Result":
        return cls(
            id=entry.n,
            tool_use_id=entry.tool_use_id,
            content=entry.content,
            is_error=entry.is_error,
            refused=entry.refused,
            extra=entry.extra,
            measure=entry.measure,
        )

    def spill(self, shown: StandIn) -> "Result":
        return structs.replace(self, spilled=shown)

    def clear(self, shown: StandIn) -> "Result":
        """Clear the result. If Longhold already replaced it, the provider's clearing is ignored."""
        if self.cleared and self.cleared.how == "rewritten" and shown.how != "rewritten":
            return self
        return structs.replace(self, cleared=shown)

    def placeholder(self, projection: Projection) -> StandIn | None:
        cleared = self.cleared
        if cleared is not None and (projection == "seen" or cleared.how == "rewritten"):
            return cleared
        return self.spilled

    def block(self, projection: Projection, tool: str = "The tool") -> ToolResult:
        instead = self.placeholder(projection)
        return ToolResult(
            tool_use_id=self.tool_use_id,
            content=self._in_place(instead) if instead else _fill_empty(self.content, tool),
            is_error=self.is_error,
            extra=self.extra,
        )

    def _in_place(self, instead: StandIn) -> ResultContent:
        """Replace the content. Spilling replaces only text and keeps images."""
        text = instead.text if instead.text.strip() else CLEARED_RESULT
        stays = drop_text(self.content) if instead.how == "spilled" else ()
        return (Text(text=text), *stays) if stays else text

    @property
    def seen_measure(self) -> Measure:
        instead = self.placeholder("seen")
        return instead.measure if instead else self.measure


class ResultList(Sequence[Result]):
    """Results in order. `add` shares the storage, so that adding many takes linear time."""

    __slots__ = ("_all", "_count", "_places")

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._all = list(results)
        self._count = len(self._all)
        self._places: dict[str, int] = {}
        for i, result in enumerate(self._all):
            self._places.setdefault(result.tool_use_id, i)

    def add(self, result: Result) -> "ResultList":
        if len(self._all) != self._count:  # another list has added to the shared storage
            return ResultList((*self, result))
        longer = ResultList()
        longer._all, longer._places, longer._count = self._all, self._places, self._count + 1
        self._places.setdefault(result.tool_use_id, self._count)
        self._all.append(result)
        return longer

    def replace(self, result: Result) -> "ResultList":
        changed = ResultList()
        changed._all, changed._places = self._all[: self._count], self._places.copy()
        changed._count = self._count
        changed._all[self._places[result.tool_use_id]] = result
        return changed

    def find(self, tool_use_id: str) -> Result | None:
        place = self._places.get(tool_use_id, self._count)
        return self._all[place] if place < self._count else None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        return self._list_shown()[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._list_shown())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._list_shown() == list(other)

    def _list_shown(self) -> list[Result]:
        return self._all if len(self._all) == self._count else self._all[: self._count]


class Round(Struct, frozen=True, kw_only=True, gc=False):
    """One answer of the model with the results of its tools. Cuts never separate them."""

    id: int
    order: int
    response_id: str
    content: Content
    results: Sequence[Result] = ()  # always a `ResultList`
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)  # maps to the provider's tool use ids
    answer_measure: Measure = NOTHING
    results_measure: Measure = NOTHING
    drops_thinking: bool = False  # thinking is no longer sent, because its prefix changed
    is_past: bool = False  # belongs to an earlier turn, whose thinking the model drops
    inputs: dict[str, JsonObject] = {}

    def __post_init__(self) -> None:
        if not isinstance(self.results, ResultList):
            structs.force_setattr(self, "results", ResultList(self.results))

    @property
    def _results(self) -> ResultList:
        assert isinstance(self.results, ResultList)
        return self.results

    @property
    def measure(self) -> Measure:
        return self.answer_measure + self.results_measure

    def hides_thinking(self, projection: Projection) -> bool:
        return self.drops_thinking or (projection == "seen" and self.is_past)

    def without_thinking(self) -> "Round":
        spoken = tuple(block for block in self._build_content() if not is_thought(block))
        if len(spoken) == len(self.content):
            return self
        return structs.replace(self, answer_measure=measure_content(spoken))

    def with_inputs(self, shorter: Mapping[str, JsonObject]) -> "Round":
        changed = structs.replace(self, inputs={**self.inputs, **shorter})
        shown = _answer(changed._build_content(), changed.hides_thinking("seen"))
        return structs.replace(changed, answer_measure=measure_content(shown))

    def _build_content(self) -> tuple[Block, ...]:
        if not self.inputs:
            return tuple(self.content)
        return tuple(
            structs.replace(block, input=self.inputs[block.id])
            if isinstance(block, ToolUse) and block.id in self.inputs
            else block
            for block in self.content
        )

    def with_result(self, result: Result) -> "Round":
        return structs.replace(
            self,
            results=self._results.add(result),
            results_measure=self.results_measure + result.seen_measure,
        )

    def with_changed(self, tool_use_id: str, change: Callable[[Result], Result]) -> "Round":
        before = self.result_of(tool_use_id)
        if before is None:
            return self
        after = change(before)
        return structs.replace(
            self,
            results=self._results.replace(after),
            results_measure=self.results_measure - before.seen_measure + after.seen_measure,
        )

    def with_cleared(self, shown: Mapping[str, StandIn]) -> "Round":
        results = tuple(
            result.clear(shown[result.tool_use_id]) if result.tool_use_id in shown else result
            for result in self.results
        )
        measure = sum((result.seen_measure for result in results), NOTHING)
        return structs.replace(self, results=results, results_measure=measure)

    def tool_uses(self) -> list[ToolUse]:
        return [block for block in self.content if isinstance(block, ToolUse)]

    def missing(self) -> list[ToolUse]:
        return [use for use in self.tool_uses() if self._results.find(use.id) is None]

    def result_of(self, tool_use_id: str) -> Result | None:
        return self._results.find(tool_use_id)

    def fragments(self, projection: Projection) -> Iterator[Message]:
        answer = _answer(self._build_content(), self.hides_thinking(projection))
        if not answer:
            return
        yield Message("assistant", answer)
        uses = [block for block in answer if isinstance(block, ToolUse)]
        if uses:
            results = {result.tool_use_id: result for result in self.results}
            yield Message("user", tuple(_with_results(use, results, projection) for use in uses))


Item: TypeAlias = Spoken | Round


def make_late(entry: Ran) -> Spoken:
    """Create a message for a result that arrived after its round was sent without it."""
    lead = Text(text=f"A result came late for tool use {entry.tool_use_id}:")
    body = (Text(text=entry.content),) if isinstance(entry.content, str) else entry.content
    return Spoken(
        id=entry.n,
        order=entry.n,
        content=(lead, *body),
        kind="late",
        hidden=True,
        measure=entry.measure,
    )


def shorten_late(late_result: Spoken, text: str, measure: Measure) -> Spoken:
    lead, *body = late_result.content
    stays = tuple(block for block in body if not isinstance(block, Text))
    shown = Text(text=text if text.strip() else CLEARED_RESULT)
    return structs.replace(late_result, content=(lead, shown, *stays), measure=measure)


def drop_text(content: ResultContent) -> tuple[Image | Document | Opaque, ...]:
    if isinstance(content, str):
        return ()
    return tuple(block for block in content if not isinstance(block, Text))


def _fill_empty(content: ResultContent, tool: str) -> ResultContent:
    if isinstance(content, str):
        return content if content.strip() else EMPTY_RESULT.format(tool=tool)
    kept = tuple(block for block in content if not is_blank(block))
    return kept or EMPTY_RESULT.format(tool=tool)


def _answer(content: Content, hides_thinking: bool) -> tuple[Block, ...]:
    kept = [block for block in content if not is_blank(block)]
    if hides_thinking:
        kept = [block for block in kept if not is_thought(block)]
    while kept and is_thought(kept[-1]):
        kept.pop()
    return tuple(kept)


def make_unanswered(tool_use_id: str) -> ToolResult:
    return ToolResult(tool_use_id=tool_use_id, content=NO_RESULT, is_error=True)


def _with_results(use: ToolUse, results: dict[str, Result], projection: Projection) -> ToolResult:
    result = results.get(use.id)
    if result is None:
        return make_unanswered(use.id)
    return result.block(projection, use.name or "The tool")


OPENING = "(The earlier part of this conversation is not available.)"
"""Inserted if the assistant's message would come first, which the API rejects."""


def join(messages: list[Message], fragment: Message) -> None:
    if not messages:
        if fragment.role == "assistant":
            messages.append(Message("user", (Text(text=OPENING),)))
        messages.append(fragment)
    elif messages[-1].role == fragment.role:
        messages[-1] = Message(fragment.role, messages[-1].content + fragment.content)
    else:
        messages.append(fragment)


def last_round(items: Sequence[Item]) -> Round | None:
    return next((item for item in reversed(items) if isinstance(item, Round)), None)


def render(items: Iterable[Item], projection: Projection = "sent") -> list[Message]:
    messages: list[Message] = []
    for item in items:
        for fragment in item.fragments(projection):
            join(messages, fragment)
    return messages
