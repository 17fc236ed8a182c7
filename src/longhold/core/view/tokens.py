"""The gauge: an estimate of the context size and its uncertainty.

The size is the last reported size plus the weight of later content. Every answer calibrates the
weights of its model. A bounded Kalman filter updates one factor per class and discounts outliers.
"""

import math
from collections.abc import Iterable
from operator import mul

from msgspec import Struct, structs
from msgspec.structs import astuple

from longhold.core.messages import Usage
from longhold.core.messages.measure import NOTHING, Measure, measure_text
from longhold.core.models.capabilities import capabilities

CLASSES = Measure.__struct_fields__
Row = tuple[float, ...]
Weights = Row  # tokens per unit of each `Measure` class, in its order

_FITTED = {
    "spaced": (0.25, 0.71),
    "joined": (0.75, 0.91),
    "letters": (0.15, 0.06),
    "humps": (0.97, 0.7),
    "digits": (0.48, 0.22),
    "numbers": (0.65, 1.03),
    "marks": (0.69, 0.63),
    "gaps": (0.66, 0.56),
    "lines": (1.87, 0.96),
    "wide": (1.0, 0.68),
    "foreign": (0.35, 0.2),
    "symbols": (0.6, 1.7),
    "unseen": (0.32, 0.25),
    "blocks": (8.0, 4.0),
    "calls": (72.0, 12.0),
    "results": (19.5, 8.0),
    "media_tokens": (1.0, 1.0),
}
"""Weights by class, for Claude and for o200k."""
CLAUDE: Weights = tuple(_FITTED[name][0] for name in CLASSES)
"""Weights fitted on recorded sessions of Claude 4.5 and 4.6. `wide` and `foreign` are guesses."""
O200K: Weights = tuple(_FITTED[name][1] for name in CLASSES)
"""Weights fitted on o200k counts of code, prose and tool output. Framing weights are guesses."""

FITTED_DOUBT = 0.06  # deviation of a session from weights fitted on other sessions
GUESSED_DOUBT = 0.25  # unmeasured tokenizers differ by up to half
CLASS_DOUBT_SHARE = 0.5  # deviation of a class, relative to the common factor's
NOISE_RATIO = 0.03  # residual error of a growth after fitting
NOISE_TOKENS = 25.0  # plus this constant
SURPRISE = 2.0  # growth with a larger deviation counts less, as it has unlogged content
FACTOR_MIN, FACTOR_MAX = 0.4, 2.5  # no known tokenizer differs more
DRIFT = 1e-5  # variance added per update, so that a calibration keeps adapting
SMALLEST_LESSON_TOKENS = 100.0  # below this, framing and rounding dominate
SETTLED_LESSONS = 500  # after this many, growth within the noise is ignored

MARGIN_RATIO = 0.05  # the shape of the margin: a share of the estimate
MARGIN_TOKENS = 50.0  # plus the cost of hidden reminders
BOUND = 0.95  # share of growths that stay below estimate plus margin
BOUND_DEVIATIONS = 1.65  # the same bound in standard deviations, for a normal error
FIRST_SPREAD = 2.5  # margin, in units of its shape, that held for 95 % of growths
SPREAD_STEP = 0.1  # one growth beyond the margin widens it by 10 %, which twenty within it undo
SPREAD_MIN, SPREAD_MAX = 1.0, 8.0  # limits, so that one session cannot distort the next


def default_weights(model: str) -> Weights:
    able = capabilities(model)
    fitted = CLAUDE if able.family == "anthropic" else O200K
    scale = able.tokenizer_scale
    if scale == 1.0:
        return fitted
    return tuple(
        weight if name == "media_tokens" else weight * scale
        for name, weight in zip(CLASSES, fitted, strict=True)
    )


def weigh(measure: Measure, weights: Weights) -> float:
    return _dot(astuple(measure), weights)


def estimate_tokens(text: str, weights: Weights = O200K) -> int:
    """Estimate a text's tokens for an unknown model, within 10 % for prose and code."""
    return round(weigh(measure_text(text), weights)) + 1


class Calibration(Struct, frozen=True, kw_only=True):
    model: str
    defaults: Weights  # the weights that the factors multiply
    factors: Row
    covariance: tuple[Row, ...]
    spread: float = FIRST_SPREAD  # the margin in units of `_shape`, adapted to observed errors
    lessons: int = 0

    @classmethod
    def create(cls, model: str) -> "Calibration":
        able = capabilities(model)
        is_fitted = able.family in ("anthropic", "openai") and able.tokenizer_scale == 1.0
        common = (FITTED_DOUBT if is_fitted else GUESSED_DOUBT) ** 2
        own = common * CLASS_DOUBT_SHARE**2
        size = range(len(CLASSES))
        return cls(
            model=model,
            defaults=default_weights(model),
            factors=(1.0,) * len(CLASSES),
            covariance=tuple(tuple(common + own * (i == j) for j in size) for i in size),
        )

    def is_current(self) -> bool:
        return self.defaults == default_weights(self.model) and len(self.factors) == len(CLASSES)

    def weigh(self, measure: Measure) -> float:
        return _dot(self._parts(measure), self.factors)

    def margin_tokens(self, measure: Measure) -> float:
        """Return a margin for underestimates that is sufficient in 95 % of cases."""
        if measure == NOTHING:
            return self.spread * MARGIN_TOKENS
        parts = self._parts(measure)
        reach = [
            _dot(row, parts) if part else 0.0
            for row, part in zip(self.covariance, parts, strict=True)
        ]
        doubt = BOUND_DEVIATIONS * math.sqrt(max(0.0, _dot(parts, reach)))
        return math.hypot(self.spread * _shape(_dot(parts, self.factors)), doubt)

    def observe(self, measure: Measure, tokens: float) -> "Calibration":
        expected = self.weigh(measure)
        if expected < SMALLEST_LESSON_TOKENS or tokens <= 0:
            return self
        is_past = tokens - expected > self.spread * _shape(expected)
        spread = self.spread * math.exp(SPREAD_STEP * (is_past - (1 - BOUND)))
        return structs.replace(
            self.learn(measure, tokens), spread=_clamp(spread, SPREAD_MIN, SPREAD_MAX)
        )

    def learn(self, measure: Measure, tokens: float) -> "Calibration":
        """Move the factors toward a provider's count, by one step of a Kalman filter.

        Beyond `SURPRISE` deviations the correction shrinks. Outliers thus have little effect, but
        the filter still adapts to a different tokenizer.
        """
        parts = self._parts(measure)
        expected = _dot(parts, self.factors)
        if expected < SMALLEST_LESSON_TOKENS or tokens <= 0:
            return self
        error, noise = tokens - expected, NOISE_RATIO * expected + NOISE_TOKENS
        if self.lessons >= SETTLED_LESSONS and abs(error) <= noise:
            return self
        reach = [
            _dot(row, parts) for row in self.covariance
        ]  # covariance of each factor with this estimate
        variance = _dot(parts, reach) + noise**2
        trust = min(1.0, SURPRISE**2 * variance / (error * error)) if error else 1.0
        pull = trust * error / variance
        calm = trust / variance
        steps = [calm * r for r in reach]
        return structs.replace(
            self,
            factors=tuple(
                [
                    _clamp(factor + pull * r, FACTOR_MIN, FACTOR_MAX)
                    for factor, r in zip(self.factors, reach, strict=True)
                ]
            ),
            covariance=tuple(
                [
                    tuple([p + DRIFT - step * q for p, q in zip(row, reach, strict=True)])
                    for row, step in zip(self.covariance, steps, strict=True)
                ]
            ),
            lessons=self.lessons + 1,
        )

    def _parts(self, measure: Measure) -> Row:
        return tuple(map(mul, astuple(measure), self.defaults))


class Gauge(Struct, frozen=True, kw_only=True):
    """The size of a view: a reported size plus the weight of later content."""

    calibration: Calibration
    reported_tokens: float = 0.0
    then: Measure = NOTHING
    is_reported: bool = False
    is_framed: bool = False  # the measure includes the frame, which an imported log lacks

    def size_tokens(self, total: Measure) -> int:
        """Weigh the view, corrected by the error of its weight at the last report.

        The correction shrinks as content leaves the view. For an imported log it stays, because it
        covers the unmeasured frame.
        """
        if total == self.then:
            return max(0, round(self.reported_tokens))
        weight, then = self.calibration.weigh(total), self.calibration.weigh(self.then)
        off = self.reported_tokens - then
        if weight < then and (off < 0 or self.is_framed):
            off *= (weight / then) ** (2 if off < 0 else 1)
        return max(0, round(weight + off))

    def margin_tokens(self, total: Measure) -> int:
        gained = total - self.then if total != self.then else NOTHING
        return math.ceil(self.calibration.margin_tokens(gained))

    def observe_usage(
        self,
        *,
        prompt_tokens: int,
        before: Measure,
        reply: Measure = NOTHING,
        output_tokens: int = 0,
        is_final: bool = False,
        is_framed: bool = False,
        learns: bool = True,
    ) -> "Gauge":
        """Use an answer's usage as the new base and, if `learns`, for calibration.

        `before` is the view's measure without the answer. Output tokens count only if `is_final`.
        """
        calibration = self.calibration
        if self.is_reported and learns:
            calibration = calibration.observe(
                before - self.then, prompt_tokens - self.reported_tokens
            )
        if is_final and output_tokens:
            if learns:
                calibration = calibration.learn(reply, output_tokens)
            known_tokens, then = float(prompt_tokens + output_tokens), before + reply
        else:
            overhang = max(0.0, output_tokens - calibration.weigh(reply))
            known_tokens, then = prompt_tokens + overhang, before
        return Gauge(
            calibration=calibration,
            reported_tokens=known_tokens,
            then=then,
            is_reported=True,
            is_framed=is_framed,
        )

    def switch(self, calibration: Calibration) -> "Gauge":
        old, new = self.calibration.weigh(self.then), calibration.weigh(self.then)
        scale = new / old if old > 0 else 1.0
        reported = self.reported_tokens * scale
        return structs.replace(self, calibration=calibration, reported_tokens=reported)


def _shape(tokens: float) -> float:
    return MARGIN_RATIO * abs(tokens) + MARGIN_TOKENS


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    return sum(map(mul, one, other), 0.0)


def _clamp(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


class ReportedSize(Struct, frozen=True, kw_only=True):
    """The last size that a provider reported, and the view's measure at that request."""

    n: int
    model: str
    usage: Usage
    then: Measure  # the view's measure before the answer that reported the usage
    is_framed: bool = False  # the measure covers the whole request, unlike in an imported log
