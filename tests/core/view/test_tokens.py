"""The gauge's estimates, how it learns, and that outliers do not mislead it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages.measure import NOTHING, Measure, measure_result, measure_text
from longhold.core.view.tokens import (
    CLASSES,
    CLAUDE,
    FACTOR_MAX,
    FACTOR_MIN,
    O200K,
    SPREAD_MAX,
    Calibration,
    Gauge,
    default_weights,
    weigh,
)

PROSE = "The gauge starts from good defaults and learns from every answer it is given. " * 40
CODE = 'def total(self) -> int:\n    return sum(row["count"] for row in self.rows[1:])\n' * 40
HASHES = "3f786850e387550fdab836ed7e6dc881de23001b  build/out_17.bin\n" * 40
TEXTS = (PROSE, CODE, HASHES)


def taught(calibration: Calibration, weights_scale: float, rounds: int) -> Calibration:
    """Teach a calibration that its model counts `weights_scale` times the defaults."""
    for i in range(rounds):
        measure = measure_result(TEXTS[i % 3])
        calibration = calibration.observe(
            measure, weights_scale * weigh(measure, calibration.defaults)
        )
    return calibration


@pytest.mark.parametrize(("text", "tokens"), [(PROSE, 601), (CODE, 880), (HASHES, 1_080)])
def test_openai_defaults_are_near_the_o200k_tokenizer(text, tokens):
    assert weigh(measure_text(text), O200K) == pytest.approx(tokens, rel=0.1)


def test_newer_tokenizers_count_more_for_the_same_text_but_not_for_a_picture():
    old, new = default_weights("claude-opus-4-5"), default_weights("claude-opus-5")
    assert old == CLAUDE
    letters, media = CLASSES.index("letters"), CLASSES.index("media_tokens")
    assert new[letters] == pytest.approx(1.3 * old[letters])
    assert new[media] == old[media]


def test_weighing_is_additive():
    one, other = measure_text(PROSE), measure_text(CODE)
    assert weigh(one + other, CLAUDE) == pytest.approx(weigh(one, CLAUDE) + weigh(other, CLAUDE))


def test_a_fresh_calibration_weighs_by_the_defaults():
    measure = measure_text(CODE)
    fresh = Calibration.create("claude-opus-4-5")
    assert fresh.weigh(measure) == pytest.approx(weigh(measure, CLAUDE))


def test_it_learns_an_unknown_tokenizer_in_a_few_answers():
    learnt = taught(Calibration.create("nobody-knows-1"), 1.4, 10)
    for text in TEXTS:
        measure = measure_result(text)
        assert learnt.weigh(measure) == pytest.approx(1.4 * weigh(measure, O200K), rel=0.05)


def test_it_learns_a_class_apart_from_the_others():
    calibration = Calibration.create("nobody-knows-1")
    by_class = dict(zip(CLASSES, calibration.defaults, strict=True))
    dearer = tuple((by_class | {"digits": 0.35, "numbers": 1.5}).values())
    for i in range(60):
        measure = measure_result(TEXTS[i % 3])
        calibration = calibration.observe(measure, weigh(measure, dearer))
    hashes, prose = measure_result(HASHES), measure_result(PROSE)
    assert calibration.weigh(hashes) == pytest.approx(weigh(hashes, dearer), rel=0.05)
    assert calibration.weigh(prose) == pytest.approx(weigh(prose, dearer), rel=0.05)


def test_an_outlier_hardly_moves_what_was_learnt():
    steady = taught(Calibration.create("claude-opus-4-5"), 1.0, 10)
    measure = measure_result(CODE)
    shaken = steady.observe(measure, 20 * steady.weigh(measure))
    assert shaken.weigh(measure) == pytest.approx(steady.weigh(measure), rel=0.02)


def test_a_fitted_model_that_really_changed_still_gets_through():
    measure = measure_result(CODE)
    learnt = taught(Calibration.create("claude-opus-4-5"), 1.35, 60)
    assert learnt.weigh(measure) == pytest.approx(1.35 * weigh(measure, CLAUDE), rel=0.06)


def test_once_settled_only_news_teaches():
    measure = measure_result(CODE)
    settled = msgspec.structs.replace(Calibration.create("claude-opus-4-5"), lessons=500)
    usual = settled.weigh(measure)
    assert settled.learn(measure, 1.02 * usual) is settled
    learnt = taught(settled, 1.35, 60)
    assert learnt.weigh(measure) == pytest.approx(1.35 * usual, rel=0.08)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*(measure_text(text) for text in TEXTS), Measure(calls=9)]),
            st.floats(min_value=-1e9, max_value=1e9),
        ),
        max_size=25,
    )
)
def test_no_history_makes_it_wild(lessons):
    calibration = Calibration.create("claude-opus-4-5")
    for measure, tokens in lessons:
        calibration = calibration.observe(measure, tokens)
    assert all(FACTOR_MIN <= factor <= FACTOR_MAX for factor in calibration.factors)
    assert 0 < calibration.margin_tokens(measure_text(CODE)) < SPREAD_MAX * 10_000


def test_margins_narrow_with_what_is_learnt():
    fresh = Calibration.create("nobody-knows-1")
    big = measure_result(CODE * 20)
    assert taught(fresh, 1.2, 10).margin_tokens(big) < 0.7 * fresh.margin_tokens(big)


def test_margins_widen_when_estimates_were_too_small():
    steady = taught(Calibration.create("claude-opus-4-5"), 1.0, 20)
    measure = measure_result(PROSE)
    shaken = steady
    for _ in range(5):
        shaken = shaken.observe(measure, 3 * steady.weigh(measure))
    assert shaken.spread > 1.3 * steady.spread


def test_a_tiny_or_shrinking_growth_teaches_nothing():
    calibration = Calibration.create("claude-opus-4-5")
    assert calibration.observe(measure_text("ok"), 500) == calibration
    assert calibration.observe(measure_text(CODE), -500) == calibration
    assert calibration.observe(NOTHING - measure_text(CODE), -500) == calibration


def test_a_calibration_survives_the_disk():
    learnt = taught(Calibration.create("gpt-5"), 1.1, 4)
    line = msgspec.json.encode(learnt)
    assert msgspec.json.decode(line, type=Calibration) == learnt
    assert len(line) < 10_000


def test_a_calibration_on_other_defaults_is_not_current():
    fresh = Calibration.create("claude-opus-4-5")
    older = msgspec.structs.replace(fresh, defaults=O200K)
    assert fresh.is_current()
    assert not older.is_current()


def test_without_any_usage_everything_is_estimated_with_a_wide_margin():
    total = measure_text(CODE * 30)
    gauge = Gauge(calibration=Calibration.create("claude-opus-4-5"))
    assert gauge.size_tokens(total) == round(weigh(total, CLAUDE))
    assert gauge.margin_tokens(total) > 0.1 * gauge.size_tokens(total)


def test_the_size_is_the_last_usage_plus_what_came_after():
    before, reply = measure_text(PROSE), measure_text(CODE)
    gauge = Gauge(calibration=Calibration.create("claude-opus-4-5")).observe_usage(
        prompt_tokens=50_000, before=before
    )
    assert gauge.size_tokens(before) == 50_000
    assert gauge.size_tokens(before + reply) == round(50_000 + weigh(reply, CLAUDE))


def test_final_output_tokens_stand_for_the_reply():
    before, reply, result = measure_text(PROSE), measure_text(CODE), measure_result("done")
    gauge = Gauge(calibration=Calibration.create("claude-opus-4-5")).observe_usage(
        prompt_tokens=50_000, before=before, reply=reply, output_tokens=1_234, is_final=True
    )
    assert gauge.size_tokens(before + reply) == 51_234
    assert gauge.size_tokens(before + reply + result) > 51_234
    assert gauge.margin_tokens(before + reply) < 200


def test_output_tokens_of_an_unfinished_piece_are_a_lower_bound():
    before, reply = measure_text(PROSE), measure_text(CODE)
    fresh = Gauge(calibration=Calibration.create("claude-opus-4-5"))
    stale = fresh.observe_usage(prompt_tokens=50_000, before=before, reply=reply, output_tokens=3)
    high = fresh.observe_usage(
        prompt_tokens=50_000, before=before, reply=reply, output_tokens=9_000
    )
    assert stale.size_tokens(before + reply) == round(50_000 + weigh(reply, CLAUDE))
    assert high.size_tokens(before + reply) == 59_000


def test_an_answer_teaches_from_the_growth_since_the_one_before():
    grown = measure_result(CODE)
    first = Gauge(calibration=Calibration.create("nobody-knows-1")).observe_usage(
        prompt_tokens=9_000, before=NOTHING
    )
    second = first.observe_usage(
        prompt_tokens=9_000 + round(1.5 * weigh(grown, O200K)), before=grown
    )
    assert first.calibration.lessons == 0
    assert second.calibration.lessons == 1
    assert second.calibration.weigh(grown) > 1.2 * weigh(grown, O200K)


def test_what_leaves_the_view_leaves_the_size():
    total, cleared = measure_text(CODE * 5), measure_text(CODE)
    gauge = Gauge(calibration=Calibration.create("claude-opus-4-5")).observe_usage(
        prompt_tokens=50_000, before=total
    )
    assert gauge.size_tokens(total - cleared) == round(50_000 - weigh(cleared, CLAUDE))


def test_a_short_rest_is_weighed_even_if_the_whole_was_estimated_too_high():
    before, rest = Measure(spaced=100_000), Measure(spaced=1_800)
    weight = Calibration.create("claude-opus-4-5").weigh
    gauge = Gauge(
        calibration=Calibration.create("claude-opus-4-5"),
        reported_tokens=0.7 * weight(before),
        then=before,
        is_reported=True,
    )
    assert gauge.size_tokens(before) == round(0.7 * weight(before))
    assert gauge.size_tokens(rest) == pytest.approx(weight(rest), rel=0.05)


def test_what_the_whole_was_off_by_leaves_with_what_it_was_about():
    before, rest = Measure(spaced=100_000), Measure(spaced=10_000)
    weight = Calibration.create("claude-opus-4-5").weigh
    prompt = round(1.2 * weight(before))

    def left(**given):
        gauge = Gauge(calibration=Calibration.create("claude-opus-4-5")).observe_usage(
            prompt_tokens=prompt, before=before, learns=False, **given
        )
        assert gauge.size_tokens(before) == prompt
        return gauge.size_tokens(rest)

    assert left(is_framed=True) == pytest.approx(1.2 * weight(rest), rel=0.01)
    assert left() == pytest.approx(weight(rest) + 0.2 * weight(before), rel=0.01)


def test_another_model_sees_the_same_view_at_its_own_scale():
    total = measure_text(CODE * 5)
    old = Gauge(calibration=Calibration.create("claude-opus-4-5")).observe_usage(
        prompt_tokens=50_000, before=total
    )
    new = old.switch(Calibration.create("claude-opus-5"))
    assert new.size_tokens(total) == pytest.approx(65_000, rel=0.01)
