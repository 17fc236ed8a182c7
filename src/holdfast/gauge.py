"""The gauge of a view: its size by the last usage it holds, and what its answers teach.

A view comes in; a `Gauge` anchored at its last answer goes out, in constant time. `replay`
walks a history and learns from every answer on the way, as a live session does; what was
learnt is kept per model under the home directory, so that the next session starts with it.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.entries import AnyEntry
from holdfast.items import Round
from holdfast.measure import NOTHING
from holdfast.settings import home
from holdfast.store import slug
from holdfast.tokens import Calibration, Gauge
from holdfast.view import Anchor, View


def gauge_of(view: View, calibration: Calibration | None = None) -> Gauge:
    """Give the gauge of a view, anchored at its last answer with usage, if it has one."""
    model = view.anchor.model if view.anchor else view.model
    gauge = Gauge(calibration=calibration or Calibration.fresh(model))
    return _answered(gauge, view.anchor, view) if view.anchor else gauge


def replay(entries: Iterable[AnyEntry], gauge: Gauge | None = None) -> tuple[View, Gauge]:
    """Fold a history and learn from each answer on the way."""
    view = View()
    pending: Anchor | None = None
    for entry in entries:
        before = pending
        view.apply(entry)
        pending = view.anchor
        if before and pending and pending.n != before.n:
            gauge = _answered(gauge or Gauge.fresh(before.model), before, view)
    if pending:
        gauge = _answered(gauge or Gauge.fresh(pending.model), pending, view)
    return view, gauge or Gauge.fresh(view.model)


def _answered(gauge: Gauge, anchor: Anchor, view: View) -> Gauge:
    """Tell the gauge what an answer reported."""
    if gauge.calibration.model != anchor.model:
        gauge = gauge.switched(load_calibration(anchor.model))
    item = view.item_of(anchor.n)
    answer = item if isinstance(item, Round) else None
    return gauge.answered(
        prompt_tokens=anchor.usage.prompt_tokens,
        before=anchor.then,
        reply=answer.answer_measure if answer else NOTHING,
        output_tokens=anchor.usage.output_tokens if answer else 0,
        is_final=bool(answer and answer.stop_reason),
    )


def load_calibration(model: str) -> Calibration:
    """Read what was learnt about a model; anything unreadable or outdated counts as nothing."""
    try:
        found = msgspec.json.decode(_place(model).read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Calibration.fresh(model)
    return found if found.model == model and found.is_current() else Calibration.fresh(model)


def save_calibration(calibration: Calibration) -> None:
    """Keep what was learnt, whole or not at all."""
    place = _place(calibration.model)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = place.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(calibration))
    partial.replace(place)


def _place(model: str) -> Path:
    return home() / "calibration" / f"{slug(Path(model))}.json"
