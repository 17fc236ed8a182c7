"""Update a view's gauge, and calibrate it from answers, per model and store."""

from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

import msgspec

from longhold.core.log.entries import AnyEntry, Replied
from longhold.core.log.shared import SharedRecords
from longhold.core.messages.measure import NOTHING, Measure
from longhold.core.settings import GaugeSettings, WindowSettings
from longhold.core.settings.project import slug
from longhold.core.view import View, fold_stepwise
from longhold.core.view.items import Round
from longhold.core.view.tokens import Calibration, Gauge, ReportedSize
from longhold.core.view.window import scale_tokens, window_for

LESSONS = 1_000  # number of answers to learn from, at 0.1 ms each
BELIEVED_RATIO = 3.0  # a report that is further off is wrong, as tokenizers differ by 2.5 at most
BELIEVED_TOKENS = 20_000  # more tolerance, because providers add prompts for tools and safety
CONFIRMED_SHARE = 0.2  # largest deviation in growth that confirms the previous report


class ViewSize:
    def __init__(self, gauge: Gauge, total: Measure) -> None:
        self.gauge, self.total = gauge, total
        self.tokens = gauge.size_tokens(total)

    @cached_property
    def margin_tokens(self) -> int:
        return self.gauge.margin_tokens(self.total)


class Follower:
    """A gauge that follows a view. Call `follow` after each change."""

    def __init__(
        self,
        recall: Callable[[str], Calibration] = Calibration.create,
        settings: GaugeSettings | None = None,
        *,
        window: WindowSettings | None = None,
    ) -> None:
        self._recall = recall  # returns the stored calibration of a model
        self._settings = settings or GaugeSettings()
        self._window = window or WindowSettings()
        self.calibrations: dict[str, Calibration] = {}
        self._reported: ReportedSize | None = None
        self._before: Gauge | None = None  # the gauge before the last answer, for comparison
        self._gauge: Gauge | None = None
        self._recalled: dict[str, Calibration] = {}

        self._earlier: ReportedSize | None = None
        self._doubted = 0
        self._size: ViewSize | None = None

    def use_window(self, window: WindowSettings) -> None:
        self._window = window

    def follow(self, view: View) -> Gauge:
        reported = view.reported
        if reported is None or reported.n == self._doubted:
            return self._gauge or self.estimate(view)
        if reported is not self._reported or self._gauge is None:
            if self._reported is None or reported.n != self._reported.n:
                self._before, self._earlier = self._gauge, self._reported
            self._reported = reported
            self._gauge = self._learn(self._before, reported, view)
            self.calibrations[reported.model] = self._gauge.calibration
        return self._gauge

    def size(self, view: View) -> ViewSize:
        gauge, total, known = self.follow(view), view.total, self._size
        if known is None or known.gauge is not gauge or known.total != total:
            known = self._size = ViewSize(gauge, total)
        return known

    def estimate(self, view: View) -> Gauge:
        return Gauge(calibration=self._calibration(view.model))

    def doubt(self, view: View) -> None:
        if view.reported is not None:
            self._doubted = view.reported.n
            self._reported, self._before, self._gauge = None, None, self.estimate(view)

    def _learn(self, gauge: Gauge | None, reported: ReportedSize, view: View) -> Gauge:
        if gauge is None:
            gauge = Gauge(calibration=self._calibration(reported.model))
        elif gauge.calibration.model != reported.model:
            gauge = gauge.switch(self._calibration(reported.model))
        item = view.item_of(reported.n)
        answer = item if isinstance(item, Round) else None
        reply = answer.answer_measure if answer else NOTHING
        prompt, output = reported.usage.prompt_tokens, reported.usage.output_tokens
        if reported.is_framed:
            believed = self._is_believed(reported, gauge.calibration)
            prompt = self._bound_reported(prompt, reported.then, gauge.calibration, believed)
            output = self._bound_reported(output, reply, gauge.calibration)
        return gauge.observe_usage(
            prompt_tokens=prompt,
            before=reported.then,
            reply=reply,
            output_tokens=output if answer else 0,
            is_final=bool(answer and answer.stop_reason),
            is_framed=reported.is_framed,
            learns=self._settings.calibrate,
        )

    def _is_believed(self, reported: ReportedSize, calibration: Calibration) -> bool:
        """Return whether the view has media of unknown size, or the previous report agrees."""
        before = self._earlier
        if reported.then.media_tokens:
            return True
        if before is None or before.model != reported.model:
            return False
        grown = calibration.weigh(reported.then) - calibration.weigh(before.then)
        expected = before.usage.prompt_tokens + grown
        most = CONFIRMED_SHARE * before.usage.prompt_tokens
        return abs(reported.usage.prompt_tokens - expected) <= most

    def _bound_reported(
        self, tokens: int, measure: Measure, calibration: Calibration, believed: bool = False
    ) -> int:
        """Limit a reported size by the estimate. Limit a believed size only by the window."""
        limit = window_for(calibration.model, self._window).limit_tokens
        slack = scale_tokens(BELIEVED_TOKENS, limit)
        own = max(0.0, calibration.weigh(measure))
        most = int(own * BELIEVED_RATIO) + slack
        if believed:
            most = max(most, limit)
        return max(int(own / BELIEVED_RATIO) - slack, min(tokens, most))

    def _calibration(self, model: str) -> Calibration:
        if model not in self.calibrations and model not in self._recalled:
            self._recalled[model] = self._recall(model)
        return self.calibrations.get(model) or self._recalled[model]


def replay(entries: Iterable[AnyEntry], follower: Follower | None = None) -> tuple[View, Gauge]:
    """Fold a history, and learn from at most its last `LESSONS` answers."""
    history, follower = list(entries), follower or Follower()
    answers = [entry.n for entry in history if isinstance(entry, Replied)]
    first = answers[-LESSONS] if len(answers) > LESSONS else 0
    view = View()
    for entry, view in zip(history, fold_stepwise(history), strict=True):
        if isinstance(entry, Replied) and entry.n >= first:
            follower.follow(view)
    return view, follower.follow(view)


def load_calibration(shared: SharedRecords, model: str) -> Calibration:
    try:
        found = msgspec.json.decode(shared.read(_name(model)), type=Calibration)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Calibration.create(model)
    return found if found.model == model and found.is_current() else Calibration.create(model)


def save_calibration(shared: SharedRecords, calibration: Calibration) -> None:
    shared.keep(_name(calibration.model), msgspec.json.encode(calibration))


def _name(model: str) -> str:
    return f"calibration/{slug(Path(model))}.json"
