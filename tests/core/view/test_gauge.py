"""The gauge follows a view: sizes, learning, parts, undo, saving the calibration."""

import msgspec
import pytest

from generated_sessions import generate
from longhold.core.log.entries import (
    Compacted,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Undone,
)
from longhold.core.log.shared import FileRecords
from longhold.core.messages import Text, Usage
from longhold.core.messages.measure import measure_content
from longhold.core.settings import GaugeSettings, home
from longhold.core.view import View, fold
from longhold.core.view.gauge import Follower, load_calibration, replay, save_calibration
from longhold.core.view.tokens import Calibration
from longhold.insight.transcripts.formats import read_lines

MODEL = "claude-opus-4-6"


def said(n, words=200):
    content = (Text(text="some words of prose " * words),)
    return Said(n=n, content=content, measure=measure_content(content))


def replied(n, prompt, output=10, id=None, stop="end_turn"):
    content = (Text(text="a short answer"),)
    return Replied(
        n=n,
        response_id=id or f"r{n}",
        model=MODEL,
        content=content,
        stop_reason=stop,
        usage=Usage(input_tokens=prompt, output_tokens=output),
        measure=measure_content(content),
    )


def size(entries):
    view, gauge = replay(entries)
    return gauge.size_tokens(view.total)


def test_without_usage_everything_is_estimated():
    view, gauge = replay([said(1)])
    assert not gauge.is_reported
    assert 500 < gauge.size_tokens(view.total) < 1_500


def test_after_a_whole_answer_the_size_is_its_usage():
    assert size([said(1), replied(2, 5_000, 70)]) == 5_070


def framed(n=0):
    return Framed(n=n, sections=(Section(name="system", text="Be kind."),))


def test_a_report_far_from_the_estimate_is_believed_once_the_next_confirms_it():
    first = [framed(1), said(2), replied(3, 150_000)]
    assert size(first) < 50_000
    assert size([*first, said(4), replied(5, 151_000, 70)]) == 151_070


def test_reports_that_jump_about_are_never_believed():
    entries = [framed(1)]
    for n, prompt in enumerate((150_000, 10**9, 40_000, 10**8)):
        entries += [said(2 * n + 2), replied(2 * n + 3, prompt)]
        assert size(entries) < 60_000


def test_no_report_is_believed_beyond_the_window():
    entries = [framed(1), said(2), replied(3, 10**9), said(4), replied(5, 10**9)]
    assert size(entries) < 1_001_000


def test_what_comes_after_is_added():
    before = [said(1), replied(2, 5_000)]
    assert 500 < size([*before, said(3)]) - size(before) < 1_500


def test_pieces_of_one_answer_count_once():
    pieces = [said(1), replied(2, 5_000, 3, "r", ""), replied(3, 5_000, 90, "r", "end_turn")]
    assert size(pieces) == 5_090


def test_a_compaction_makes_it_smaller_before_any_new_usage():
    entries = [said(n, 2_000) for n in range(1, 9)] + [replied(9, 100_000)]
    summary = (Text(text="short"),)
    cut = Compacted(n=10, first=1, last=8, summary=summary, measure=measure_content(summary))
    assert size([*entries, cut]) < size(entries) - 40_000


def test_sizes_reported_under_an_undone_compaction_are_not_trusted():
    entries = [said(n, 2_000) for n in range(1, 9)] + [replied(9, 100_000, 10)]
    summary = (Text(text="short"),)
    cut = Compacted(n=10, first=1, last=8, summary=summary, measure=measure_content(summary))
    small = [*entries, cut, said(11), replied(12, 22_000)]
    assert size(small) == 22_010
    assert size([*small, Undone(n=13, target=10)]) > 100_000


def test_following_live_equals_replaying():
    entries = list(read_lines(generate(5, 200), "claude-code"))
    view, follower = View(), Follower()
    for entry in entries:
        view.apply(entry)
        live = follower.follow(view)
    again, gauge = replay(entries)
    assert live.size_tokens(view.total) == gauge.size_tokens(again.total)


def test_a_session_predicts_its_own_growth():
    view, follower = View(), Follower()
    met = missed = 0
    for entry in read_lines(generate(11, 400), "claude-code"):
        known = follower.follow(view) if view.reported else None
        view.apply(entry)
        reported = view.reported
        if isinstance(entry, Replied) and known and reported and reported.n == entry.n:
            bound = known.size_tokens(reported.then) + known.margin_tokens(reported.then)
            met, missed = (
                (met + 1, missed) if reported.usage.prompt_tokens <= bound else (met, missed + 1)
            )
    assert met > 50
    assert missed / (met + missed) < 0.15


def test_thinking_of_past_turns_weighs_nothing_where_the_model_is_not_shown_it():
    from longhold.core.messages import Thinking

    def history(model):
        content = (Thinking(thinking="long thoughts " * 500), Text(text="done"))
        answer = Replied(
            n=2, response_id="r", model=model, content=content, measure=measure_content(content)
        )
        return fold([said(1), answer, said(3)])

    assert (
        history("claude-sonnet-4-5").total.letters
        < history("claude-opus-4-6").total.letters - 5_000
    )


def test_what_was_learnt_is_kept_per_model():
    learnt = Calibration.create(MODEL).learn(measure_content("some text " * 500), 2_000)
    shared = FileRecords(home())
    save_calibration(shared, learnt)
    assert load_calibration(shared, MODEL) == learnt
    assert load_calibration(shared, "claude-opus-4-5").lessons == 0


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'{"model":"claude-opus-4-6"}'])
def test_a_damaged_calibration_counts_as_none(body):
    shared = FileRecords(home())
    save_calibration(shared, Calibration.create(MODEL))
    [file] = (home() / "calibration").iterdir()
    file.write_bytes(body)
    assert load_calibration(shared, MODEL) == Calibration.create(MODEL)


def test_a_result_of_an_unknown_tool_use_does_not_count():
    entries = [said(1), replied(2, 5_000)]
    stray = Ran(
        n=3, tool_use_id="nobody", content="x" * 9_000, measure=measure_content("x" * 9_000)
    )
    assert size([*entries, stray]) == size(entries)


def test_calibrations_are_plain_json():
    assert msgspec.json.decode(msgspec.json.encode(Calibration.create(MODEL)))["model"] == MODEL


def test_with_calibration_off_nothing_is_learnt():
    view, follower = View(), Follower(settings=GaugeSettings(calibrate=False))
    for entry in read_lines(generate(5, 200), "claude-code"):
        view.apply(entry)
        gauge = follower.follow(view)
    assert gauge.calibration.lessons == 0
    assert gauge.is_reported
