"""A draft is made smaller until it fits, what is dearest last."""

from holdfast.messages import Text
from holdfast.stages.compact.draft import lighter


def file(name, words):
    """A file as it is shown again."""
    text = f"[Restored file /p/{name}, as it is on disk now: 9 characters]\n" + "word " * words
    return Text(text=text)


def test_files_go_one_by_one_the_oldest_first():
    """Todos, plan and greeting stay to the last."""
    new, old, todos, greeting = file("new", 1), file("old", 1), Text(text="todos"), Text(text="hi")
    assert [*lighter((new, old, todos, greeting))] == [
        (new, old, todos, greeting),
        (new, todos, greeting),
        (todos, greeting),
        (),
    ]


def test_without_files_it_is_all_or_nothing():
    """There is nothing to choose from."""
    assert [*lighter((Text(text="todos"),))] == [(Text(text="todos"),), ()]
    assert [*lighter((file("a", 1),))] == [(file("a", 1),), (), ()]


async def test_over_the_line_the_newest_file_and_the_todos_are_still_restored(talk):
    """Two files of which one leaves half of the line free."""
    one = talk(asks=False).fill()
    new, old, todos = file("new", 5_000), file("old", 9_000), Text(text="[Restored todos]")

    async def restore(segment):
        return (new, old, todos)

    one.hooks.restore = restore
    await one.prepare()
    (restored,) = [e for e in one.view.history if type(e).__name__ == "Restored"]
    assert restored.content == (new, todos)
    assert one.used <= one.line / 2
