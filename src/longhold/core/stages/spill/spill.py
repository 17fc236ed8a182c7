"""The spill stage: a tool result over its size limit goes to disk, and a preview is shown.

Each decision is an entry, so a resumed or forked session shows the same bytes. If the disk refuses,
the whole result stays in the context.
"""

from dataclasses import dataclass, field

from msgspec import structs

from longhold.core.log.entries import Failed, Ran, Spilled
from longhold.core.log.results import BODY_FILE_BYTES, Body
from longhold.core.messages import ResultContent, Text
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import byte_count, human_size
from longhold.core.stages.spill.budget import (
    Arrived,
    Budgets,
    find_arrived,
    is_short,
    plan_alone,
    plan_together,
)
from longhold.core.stages.spill.preview import preview, repetition
from longhold.core.tools.describe import HISTORY, description_of
from longhold.core.turn.engine import Engine, keep_long
from longhold.core.view import View
from longhold.core.view.items import Result, Round, drop_text
from longhold.core.view.tokens import default_weights, weigh
from longhold.core.view.window import window_for
from longhold.errors import StoreError

REPEAT_BYTES = 256
"""A reference to an identical earlier result costs as much as a smaller result."""


@dataclass(slots=True)
class Repeats:
    """Finds the shown result that a new one repeats, by hash and then by content."""

    _first: dict[int, str] = field(default_factory=dict)
    _is_built: bool = False

    def first_of(self, view: View, ran: Ran) -> Result | None:
        """Return the shown result that a new one repeats. Otherwise remember the new one."""
        if not self._is_built:
            self._build(view)
        key = key_of(ran.content)
        if key is None:
            return None
        known = _find_shown(view, self._first.get(key, ""))
        if known is None:
            self._first[key] = ran.tool_use_id
            return None
        is_same = known.content == ran.content and known.is_error == ran.is_error
        return known if is_same and known.tool_use_id != ran.tool_use_id else None

    def _build(self, view: View) -> None:
        # A resumed session already shows results that a new one may repeat.
        self._is_built = True
        for item in view.items:
            for result in item.results if isinstance(item, Round) else ():
                key = key_of(result.content)
                if key is not None:
                    self._first.setdefault(key, result.tool_use_id)


def key_of(content: ResultContent) -> int | None:
    if isinstance(content, str):
        return hash(content)
    if not all(isinstance(block, Text) for block in content):
        return None
    return hash(tuple(block.text for block in content if isinstance(block, Text)))


def _find_shown(view: View, tool_use_id: str) -> Result | None:
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner else None
    # Naming a result that is not shown itself would send the model from one line to another.
    if result is None or result.cleared is not None:
        return None
    return None if result.spilled and result.spilled.same_as else result


@dataclass(slots=True)
class Spill:
    """The spill layer of one session: `arrive` takes each result, `stage` runs before each call."""

    _repeats: Repeats = field(default_factory=Repeats)
    _refused: set[str] = field(default_factory=set)
    """Results the disk refused. They are not tried again."""
    _lying_bytes: int | None = None
    """Bytes on disk; None until counted."""

    def arrive(self, engine: Engine, ran: Ran) -> tuple[Ran, Spilled | Failed | None]:
        """Return a result as the log keeps it, and the entry that decides how it is shown."""
        body, kept = engine.results.shorten(ran, engine.settings)
        arrived = find_arrived(engine.view, ran)
        # The view does not have its call, so there is nothing to show a preview in.
        if arrived is None:
            return keep_long(engine, ran)
        entry: Spilled | None = None
        # The reason for a refusal is in the user's own words.
        if engine.settings.spill.on and not ran.refused and not _is_known(engine.view, kept):
            entry = self._find_repeated(engine, arrived) if body is None else None
            if entry is None and (spilling := _plan_arrived(engine, arrived)):
                body, entry = spilling
        if body is not None:
            # If the log only has the head of a result, the file is the only copy and must reach the
            # disk.
            failed = self._keep(engine, arrived, body, is_only_copy=kept is not ran)
            if failed is not None:
                return ran, failed
        return kept, entry

    async def stage(self, engine: Engine) -> None:
        """Bring the next message within its limits: each result, then all together."""
        self._sweep(engine)
        if not engine.settings.spill.on or is_short(engine.view):
            return
        budgets = _budgets_of(engine)
        # Together after alone, because what was spilled alone no longer counts.
        for plan in (plan_alone, plan_together):
            for arrived, why in plan(engine.view, budgets):
                self._spill_again(engine, arrived, budgets, why)

    def _spill_again(self, engine: Engine, arrived: Arrived, budgets: Budgets, why: str) -> None:
        if arrived.id in self._refused:
            return
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
        """Return an entry that refers to the shown result this one repeats, if that is shorter.

        The first may leave the view, so this one must be recoverable by History or a new call.
        """
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
        what = "what the log has of" if arrived.ran.file else "the whole result of"
        stays = f"{what} {arrived.tool} ({size}) stays in the context"
        return Failed(what="spill", error=f"{error}; {stays}", detail={"tool_use_id": arrived.id})

    def _sweep(self, engine: Engine) -> None:
        cap_bytes = engine.settings.spill.session_bytes
        # Counting reads the directory, so it is done once; `_keep` adds what comes after.
        if self._lying_bytes is None or self._lying_bytes > cap_bytes:
            for swept in engine.results.sweep(engine.settings.spill):
                engine.record(swept)
            self._lying_bytes = sum(file.bytes for file in engine.results.stored())


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
    cap_bytes = BODY_FILE_BYTES
    body = engine.results.body(ran.tool_use_id, ran.content, cap_bytes=cap_bytes)
    text = preview(arrived, body, _readers_of(engine), room, mask_secrets)
    measure = _weight(text, ran.content)
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


def _weight(text: str, content: ResultContent) -> Measure:
    stays = drop_text(content)
    return measure_content((Text(text=text), *stays)) if stays else measure_content(text)


def _is_lighter(engine: Engine, instead: Measure, content: ResultContent) -> bool:
    weights = default_weights(engine.model)
    return weigh(instead, weights) < weigh(measure_content(content), weights)
