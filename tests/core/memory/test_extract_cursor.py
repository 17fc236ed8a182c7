"""Messages that were not searched yet: after the cursor, up to a message, each once."""

from longhold.core.log.entries import Ran, Remembered, Replied, Said
from longhold.core.memory.extract import ExtractionCursor
from longhold.core.messages import Text, ToolUse


def said(n, hidden=False):
    return Said(n=n, content=(Text(text="words"),), hidden=hidden)


def wrote(n, command="create", path="/memories/a.md"):
    use = ToolUse(id=f"t{n}", name="memory", input={"command": command, "path": path})
    return Replied(response_id="r", model="m", n=n, content=(use,), stop_reason="tool_use")


def ran(n, of, is_error=False):
    return Ran(n=n, tool_use_id=f"t{of}", content="ok", is_error=is_error)


def replied(n):
    return Replied(
        response_id="r", model="m", n=n, content=(Text(text="done"),), stop_reason="end_turn"
    )


def test_a_stretch_reaches_from_the_cursor_to_a_message():
    unread = ExtractionCursor().follow(
        [said(1), replied(2), said(3), said(4, hidden=True), replied(5)]
    )
    stretch = unread.new_messages(unread.last)
    assert (stretch.cursor, stretch.messages, stretch.asked) == (5, 5, 3)
    assert unread.new_messages(2).asked == 1


def test_the_cursor_is_read_from_the_log():
    unread = ExtractionCursor().follow([said(1), replied(2), Remembered(n=3, cursor=2)])
    assert unread.new_messages(unread.last) is None
    unread.follow([said(1), replied(2), Remembered(n=3, cursor=2), said(4), replied(5)])
    assert unread.new_messages(5).messages == 2


def test_what_the_agent_wrote_itself_is_named():
    history = [said(1), wrote(2), ran(3, 2), wrote(4, "view", "/memories/b.md"), ran(5, 4)]
    history += [wrote(6, path="/memories/c.md"), ran(7, 6, is_error=True), replied(8)]
    unread = ExtractionCursor().follow(history)
    assert (unread.new_messages(8), unread.take_own(), unread.take_own()) == (None, ("a.md",), ())


def test_only_the_turn_in_which_the_agent_wrote_is_passed_over():
    history = [said(1), replied(2), said(3), replied(4), said(5), wrote(6), ran(7, 6), replied(8)]
    unread = ExtractionCursor().follow(history)
    waiting = unread.new_messages(unread.last)
    assert (waiting.words, waiting.asked, unread.cursor) == (2, 3, 0)


def test_words_of_hooks_alone_are_nothing_to_learn_from():
    assert ExtractionCursor().follow([said(1, hidden=True), replied(2)]).new_messages(2) is None
