"""A lower bound for a session's cost: new tokens once, and no unneeded reads."""

from dataclasses import replace

import pytest

from longhold.core.log.entries import Ran, Replied, Said, Snipped
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import prices
from longhold.core.request.billing.pieces import PieceMeter
from longhold.insight.replay.limit import least_cost
from longhold.insight.replay.policies import POLICIES
from longhold.insight.replay.recorded_session import RecordedSession, count_tokens

MODEL = "claude-opus-4-5"
FRAME = 20_000
LINES = "\n".join(f"{n}→value {n} of a file that is long enough to matter" for n in range(200))


def session(paths, seconds=10.0, slow=()):
    """A person asks once, and each call reads one file; `slow` calls come an hour later."""
    entries, at = [Said(content=(Text(text="Look at the files."),), at=0.0)], 0.0
    for number, path in enumerate(paths):
        at += seconds + (3_700.0 if number in slow else 0.0)
        use = ToolUse(id=f"t{number}", name="Read", input={"file_path": path})
        prompt = FRAME + 3_000 * number
        usage = Usage(cache_write_tokens=prompt, cache_write_1h_tokens=prompt, output_tokens=50)
        answer = Replied(response_id=f"r{number}", content=(use,), usage=usage, model=MODEL, at=at)
        text = (Text(text=f"{path}\n{LINES}" if path != "a.py" else LINES),)
        entries += [answer, Ran(tool_use_id=use.id, content=text, at=at + 1)]
    numbered = [type(one)(**fields(one) | {"n": n}) for n, one in enumerate(entries, 1)]
    return RecordedSession("made", numbered)


def fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__ if name != "n"}


def tokens(recording, kind):
    scale = capabilities(MODEL).tokenizer_scale * recording.density
    meter = PieceMeter(recording.counter, scale)
    return [count_tokens(one, meter) for one in recording.entries if isinstance(one, kind)]


def test_what_nobody_needs_again_is_sent_once_and_not_read():
    recording = session([f"{n}.py" for n in range(6)])
    price, found = prices(MODEL), least_cost(recording, MODEL, "1h")
    sent = sum((*tokens(recording, Said), *tokens(recording, Replied)[:-1]))
    sent += sum(tokens(recording, Ran)[:-1])
    assert found["results"] == found["expired"] == 0
    frame = found["frame"] * 1e6 / price.read / 5
    assert frame == pytest.approx(recording.frame_tokens, rel=0.03)
    assert found["new"] == pytest.approx((frame * price.write_1h + sent * price.input) / 1e6)
    assert found["output"] == pytest.approx(6 * 50 * price.output / 1e6)


@pytest.mark.parametrize(("between", "is_kept"), [(3, True), (30, False)])
def test_a_result_needed_again_is_kept_or_sent_again_whichever_is_cheaper(between, is_kept):
    others = [f"{n}.py" for n in range(between)]
    recording = session(["a.py", *others, "a.py", "end.py"])
    price = prices(MODEL)
    # The call after the first has it anyway; each of the others reads it, up to the one that asks.
    kept = price.write_5m - price.input + between * price.read
    each = kept if is_kept else price.input
    assert is_kept == (kept < price.input)
    first = tokens(recording, Ran)[0]
    found = least_cost(recording, MODEL, "5m")["results"]
    assert found == pytest.approx(first * each / 1e6)


def test_a_pause_longer_than_the_lifetime_costs_a_write_of_the_frame():
    paths = [f"{n}.py" for n in range(5)]
    warm = least_cost(session(paths), MODEL, "1h")
    cold = least_cost(session(paths, slow=(3,)), MODEL, "1h")
    price = prices(MODEL)
    read = warm["frame"] / 4
    assert (warm["expired"], cold["frame"]) == (0, pytest.approx(3 * read))
    assert cold["expired"] == pytest.approx(read / price.read * price.write_1h)


def test_no_policy_pays_less_and_what_each_pays_is_explained_by_cause(recording):
    best = sum(least_cost(recording, MODEL, "1h").values())
    for name in ("ours", "sliding_window", "provider_compaction", "mask_results"):
        found = POLICIES[name].play(recording, model=MODEL, lifetime="1h", window_tokens=60_000)
        assert sum(found.paid.values()) == pytest.approx(found.main.usd)
        assert best < found.total.usd + found.needed_usd
    assert found.paid["moved"] > 0 and found.paid["results"] > 0


def test_what_the_recording_took_back_costs_nothing():
    recording = session(["1.py", "2.py"])
    said = Said(content=(Text(text="Never mind. " * 500),), n=90, at=1.0)
    with_it = [recording.entries[0], said, *recording.entries[1:]]
    taken_back = [*with_it[:2], Snipped(targets=(90,), n=91, at=2.0), *with_it[2:]]
    plain, more, less = (
        least_cost(replace(recording, entries=entries), MODEL, "1h")
        for entries in (recording.entries, with_it, taken_back)
    )
    assert more["new"] > plain["new"] + 0.001
    assert less["new"] == pytest.approx(plain["new"], rel=0.01)


def test_a_recording_without_a_call_costs_nothing():
    assert set(least_cost(RecordedSession("empty", []), MODEL, "1h").values()) == {0}
