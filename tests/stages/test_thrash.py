"""A window that is refilled again and again: what refills it is named and acted on."""

from holdfast.entries import Cleared, Failed
from holdfast.messages import Text, text_of
from holdfast.rules import violations

from .compacting import SUMMARY


async def refilled(one, times):
    """Compact, and fill the window again within an answer, several times."""
    for _ in range(times):
        one.turn("read it all", words=21_000, id=f"big{len(one.view.history)}")
        one.engine.say("go on")
        await one.prepare()
        one.answered(input_tokens=one.used)


async def test_what_refills_the_window_is_named_and_cleared(talk):
    """Three times in a row is enough; no fourth summary is paid for."""
    one = talk(*[SUMMARY] * 9)
    one.engine.limits_chars = {"Read": None}
    await refilled(one, 4)
    (thrash,) = [e for e in one.of(Failed) if e.what == "thrash"]
    assert "the result of Read /src/big" in thrash.error
    assert thrash.error in one.told
    (cleared,) = one.of(Cleared)
    assert "ask for less of it at a time" in cleared.texts[0]
    assert len(one.compacted) == 3
    assert one.used < one.line
    assert violations(one.view.messages()) == []


async def test_files_that_are_restored_each_time_are_restored_no_more(talk):
    """If what refills it is our own doing, we stop doing it."""
    one = talk(*[SUMMARY] * 9)

    async def restore(segment):
        return (Text(text="word " * 15_000),)

    one.stage.around.restore = restore
    one.fill()
    for _ in range(5):
        await one.prepare()
        one.answered(input_tokens=one.used)
        for _ in range(5):
            one.turn("a little more", words=900)
        one.engine.say("go on")
    assert any(e.what == "thrash" and "brought back" in e.error for e in one.of(Failed))
    assert "word word" not in text_of(one.view.items[1].content)


async def test_a_window_that_fills_slowly_is_no_thrashing(talk):
    """Many answers lie between the compactions."""
    one = talk(*[SUMMARY] * 9)
    for _ in range(5):
        one.fill()
        await one.prepare()
        for _ in range(5):
            one.answered(input_tokens=one.used)
            one.engine.say("next")
    assert len(one.compacted) == 5
    assert "thrash" not in one.failed
