"""A draft is shrunk until it fits, with the most valuable content last."""

import pytest

from compacting import SUMMARY
from longhold.core.log.entries import Restored
from longhold.core.messages import Text
from longhold.core.stages.compact import draft
from longhold.core.stages.compact.draft import lighten


def file(name, words):
    """A file as it is shown again."""
    text = f"[Restored file /p/{name}, as it is on disk now: 9 characters]\n" + "word " * words
    return Text(text=text)


def test_files_go_one_by_one_the_oldest_first():
    new, old, todos, greeting = file("new", 1), file("old", 1), Text(text="todos"), Text(text="hi")
    assert [*lighten((new, old, todos, greeting))] == [
        (new, old, todos, greeting),
        (new, todos, greeting),
        (todos, greeting),
        (),
    ]


def test_without_files_it_is_all_or_nothing():
    assert [*lighten((Text(text="todos"),))] == [(Text(text="todos"),), ()]
    assert [*lighten((file("a", 1),))] == [(file("a", 1),), (), ()]


async def test_over_the_line_the_newest_file_and_the_todos_are_still_restored(talk):
    one = talk(asks=False).fill()
    new, old, todos = file("new", 5_000), file("old", 9_000), Text(text="[Restored todos]")

    async def restore(segment):
        return (new, old, todos)

    one.hooks.restore = restore
    await one.prepare()
    (restored,) = [e for e in one.view.history if type(e).__name__ == "Restored"]
    assert restored.content == (new, todos)
    assert one.used <= one.line / 2


@pytest.mark.parametrize("ratio", [0.3, 0.42, 0.6])
@pytest.mark.parametrize("scripts", [(), (SUMMARY,)], ids=["digest", "model"])
async def test_no_more_of_the_line_is_filled_afterwards_than_is_allowed(
    talk, monkeypatch, ratio, scripts
):
    monkeypatch.setattr(draft, "FILLED_RATIO", ratio)
    one = talk(*scripts, asks=bool(scripts)).fill()
    files = tuple(file(str(number), 1_500) for number in range(12))

    async def restore(segment):
        return files

    one.hooks.restore = restore
    await one.prepare()
    assert one.compacted[0].by == ("model" if scripts else "digest")
    assert one.used <= ratio * one.line
    restored = sum(len(e.content) for e in one.of(Restored))
    assert restored < len(files), "there was more to restore than fits"
    assert one.used + 2 * 1_500 > ratio * one.line, "what fits is restored"
