"""How each kind of entry changes a view."""

import time

from longhold.core.log.entries import (
    Asked,
    Began,
    Cleared,
    ClearedInput,
    Collapsed,
    Compacted,
    Failed,
    Framed,
    Pinned,
    Ran,
    Redone,
    Replied,
    Restored,
    Said,
    Snipped,
    Spilled,
    Switched,
    Titled,
    Undone,
    add_measure,
)
from longhold.core.messages import (
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    message_to_wire,
    text_of,
)
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.view import View, fold
from longhold.core.view.gauge import replay
from longhold.core.view.items import NO_RESULT, OPENING
from properties.strategies import numbered

KEEPS_THINKING = "claude-opus-4-5"


def said(text, **fields):
    return Said(content=(Text(text=text),), **fields)


def replied(response_id, *content, **fields):
    return Replied(response_id=response_id, content=content, **fields)


def use(id):
    return ToolUse(id=id, name="read", input={"path": f"{id}.py"})


def ran(id, content="ok", **fields):
    return Ran(tool_use_id=id, content=content, **fields)


def summary(first, last, text="a summary", **fields):
    return Compacted(first=first, last=last, summary=(Text(text=text),), **fields)


def view_of(*entries):
    return fold(numbered(entries))


def told(view):
    """Every text the model reads, in order."""
    texts = []
    for message in view.render_seen():
        for block in message.content:
            match block:
                case ToolResult(content=content):
                    texts.append(text_of(content))
                case Text(text=text) | Thinking(thinking=text):
                    texts.append(text)
    return texts


TALK = (
    said("one"),
    replied("r1", Text(text="two")),
    said("three"),
    replied("r2", Text(text="four")),
)


def test_an_empty_log_is_an_empty_view():
    view = fold([])
    assert view.messages() == [] == view.render_seen()
    assert view.total == Measure()
    assert view.count_compactable() == 0


def test_a_conversation_is_shown_as_it_was_had():
    view = view_of(
        said("hi"), replied("r1", use("a")), ran("a", "body"), replied("r2", Text(text="done"))
    )
    assert [message_to_wire(message) for message in view.messages()] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a.py"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "body"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]


def test_pieces_of_one_response_are_one_answer():
    view = view_of(said("hi"), replied("r1", use("a")), ran("a"), replied("r1", use("b")), ran("b"))
    assert len(view.items) == 2
    assert [len(message.content) for message in view.messages()] == [1, 2, 2]


def test_answers_without_an_id_are_not_pieces_of_one():
    view = view_of(said("1"), replied("", Text(text="2")), said("3"), replied("", Text(text="4")))
    assert told(view) == ["1", "2", "3", "4"]


def test_a_view_that_would_begin_with_the_assistant_gets_an_opening():
    assert told(view_of(replied("r1", Text(text="hello")))) == [OPENING, "hello"]


def test_results_stand_in_the_order_of_the_calls():
    view = view_of(
        said("hi"), replied("r1", use("a"), use("b")), ran("b", "second"), ran("a", "first")
    )
    assert told(view) == ["hi", "first", "second"]


def test_a_result_that_never_came_is_replaced():
    view = view_of(said("hi"), replied("r1", use("a")))
    assert view.messages()[-1].content == (
        ToolResult(tool_use_id="a", content=NO_RESULT, is_error=True),
    )


def test_a_result_told_twice_is_shown_once():
    view = view_of(said("hi"), replied("r1", use("a")), ran("a", "x"), ran("a", "x"))
    assert told(view) == ["hi", "x"]


def test_a_second_result_that_differs_is_told_beside_the_first():
    view = view_of(said("hi"), replied("r1", use("a")), ran("a", "x"), ran("a", "y"))
    assert told(view) == ["hi", "x", "A result came late for tool use a:", "y"]


def test_a_result_after_the_next_answer_is_told_as_late():
    view = view_of(
        said("hi"), replied("r1", use("a")), replied("r2", Text(text="on")), ran("a", "x")
    )
    assert told(view) == ["hi", NO_RESULT, "on", "A result came late for tool use a:", "x"]


def test_a_result_after_the_round_was_sent_without_it_is_told_as_late():
    view = view_of(said("hi"), replied("r1", use("a")), Asked(), ran("a", "x"))
    assert told(view) == ["hi", NO_RESULT, "A result came late for tool use a:", "x"]


def test_a_result_nobody_asked_for_is_left_out():
    assert told(view_of(said("hi"), ran("nobody"))) == ["hi"]


def test_a_tool_use_id_is_used_once():
    view = view_of(
        said("hi"), replied("r1", use("a"), use("a")), ran("a", "x"), replied("r2", use("a"))
    )
    assert told(view) == ["hi", "x"]


def test_what_began_and_never_ended_is_interrupted():
    view = view_of(said("hi"), replied("r1", use("a"), use("b"), use("c")), Began(tool_use_id="a"))
    view.apply(Began(n=4, tool_use_id="b"))
    view.apply(ran("b", n=5))
    assert [call.id for call in view.list_interrupted()] == ["a"]


def test_what_ran_and_is_called_again_has_not_begun():
    view = view_of(
        said("hi"),
        replied("r1", use("a")),
        Began(tool_use_id="a"),
        ran("a"),
        summary(1, 2),
        replied("r2", use("a")),
    )
    assert view.open_round() is not None
    assert view.list_interrupted() == []


def test_a_spilled_result_shows_its_preview():
    view = view_of(
        said("hi"), replied("r1", use("a")), ran("a", "long " * 99, measure=Measure(spaced=99))
    )
    view.apply(
        Spilled(n=4, tool_use_id="a", text="long …", file="a.txt", measure=Measure(spaced=2))
    )
    assert told(view) == ["hi", "long …"]
    assert view.total == Measure(spaced=2)


def test_a_late_result_is_spilled_where_it_is_told():
    view = view_of(said("hi"), replied("r1", use("a")), ran("a", "x"), ran("a", "y" * 99))
    view.apply(Spilled(n=5, tool_use_id="a", text="y …", rests_on=(4,), measure=Measure(spaced=2)))
    assert told(view) == ["hi", "x", "A result came late for tool use a:", "y …"]


def test_clearing_by_rewriting_changes_what_is_sent_and_seen():
    view = view_of(
        said("hi"), replied("r1", use("a")), ran("a", "x"), Cleared(ids=("a",), texts=("gone",))
    )
    assert view.messages() == view.render_seen()
    assert told(view) == ["hi", "gone"]


def test_clearing_on_the_providers_side_changes_only_what_is_seen():
    talk = (said("hi"), replied("r1", use("a")), ran("a", "x"))
    for how in ("edited", "server"):
        view = view_of(*talk, Cleared(ids=("a",), texts=("gone",), how=how))
        assert view.messages() == view_of(*talk).messages()
        assert told(view) == ["hi", "gone"]


def test_an_edit_becomes_a_rewriting_when_the_cache_dies():
    view = view_of(
        said("hi"),
        replied("r1", use("a")),
        ran("a", "x"),
        Cleared(ids=("a",), texts=("gone",), how="edited"),
        Cleared(ids=("a",), texts=("gone",), how="rewritten"),
    )
    assert view.messages() == view.render_seen()


def test_what_we_rewrote_is_not_sent_again_because_a_provider_cleared_it():
    view = view_of(
        said("hi"),
        replied("r1", use("a")),
        ran("a", "x"),
        Cleared(ids=("a",), texts=("gone",), how="rewritten"),
        Cleared(ids=("a",), texts=("gone too",), how="server"),
    )
    assert view.messages()[-1].content == (ToolResult(tool_use_id="a", content="gone"),)


def test_a_snip_takes_whole_rounds():
    view = view_of(said("hi"), replied("r1", use("a")), ran("a"), said("on"), Snipped(targets=(3,)))
    assert told(view) == ["hi", "on"]


def test_a_snip_leaves_an_open_round():
    view = view_of(said("hi"), replied("r1", use("a")), Snipped(targets=(1, 2)), ran("a", "x"))
    assert told(view) == [OPENING, "x"]


def test_a_compaction_puts_a_summary_in_place_of_a_span():
    assert told(view_of(*TALK, summary(1, 3))) == ["a summary", "four"]


def test_a_compaction_from_a_point_keeps_what_came_before():
    assert told(view_of(*TALK, summary(3, 4, kind="from"))) == ["one", "two", "a summary"]


def test_a_compaction_keeps_what_is_pinned():
    view = view_of(*TALK, Pinned(targets=(1, 3)), summary(1, 4))
    assert told(view) == ["one", "a summary", "three"]


def test_what_is_no_longer_pinned_is_compacted():
    view = view_of(*TALK, Pinned(targets=(3,)), Pinned(targets=(3,), on=False), summary(1, 4))
    assert told(view) == ["a summary"]


def test_a_pin_on_what_left_the_view_does_not_pin_the_summary():
    view = view_of(*TALK, summary(1, 3), Pinned(targets=(1,)), summary(5, 4, text="all of it"))
    assert told(view) == ["all of it"]


def test_a_snip_of_what_left_the_view_does_not_take_the_summary():
    compacted = (*TALK, summary(1, 3))
    assert told(view_of(*compacted, Snipped(targets=(1,)))) == ["a summary", "four"]
    assert told(view_of(*compacted, Snipped(targets=(5,)))) == [OPENING, "four"]


def test_a_pin_says_nothing_about_messages_to_come():
    view = view_of(Pinned(targets=(2,)), said("two"), summary(1, 2))
    assert told(view) == ["a summary"]


def test_a_compaction_keeps_the_open_round_at_its_end():
    view = view_of(said("hi"), replied("r1", use("a")), summary(1, 2), ran("a", "x"))
    assert told(view) == ["a summary", "x"]


def test_a_later_compaction_covers_an_earlier_summary():
    view = view_of(*TALK, summary(1, 3), said("five"), summary(5, 6, text="all of it"))
    assert told(view) == ["all of it"]


def test_a_collapsed_span_is_one_line():
    assert told(view_of(*TALK, Collapsed(first=2, last=3, text="a line"))) == [
        "one",
        "a line",
        "four",
    ]


def test_what_was_restored_comes_after_the_summary():
    view = view_of(*TALK, summary(1, 4), Restored(compaction=5, content=(Text(text="a file"),)))
    assert told(view) == ["a summary", "a file"]


def test_undo_takes_along_what_rests_on_it():
    entries = (*TALK, summary(1, 4), Restored(compaction=5, content=(Text(text="a file"),)))
    assert told(view_of(*entries, Undone(target=5))) == ["one", "two", "three", "four"]
    again = view_of(*entries, Undone(target=5), Redone(target=5))
    assert told(again) == ["a summary", "a file"]


def test_what_comes_to_rest_on_an_undone_entry_has_no_effect():
    entries = numbered(
        (*TALK, summary(1, 2), Undone(target=5), Collapsed(first=3, last=5, text="no"))
    )
    view = View()
    for entry in entries:
        view.apply(entry)
    assert told(view) == told(fold(entries)) == ["one", "two", "three", "four"]


def test_an_entry_cannot_rest_on_a_later_one():
    view = view_of(*TALK, Snipped(targets=(3, 6)), summary(1, 2), Undone(target=6))
    assert told(view) == ["one", "two", "four"]


def test_only_shaping_entries_can_be_undone():
    assert told(view_of(*TALK, Undone(target=3), Undone(target=99))) == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_a_compaction_stops_before_an_open_round_whose_result_still_comes():
    view = view_of(said("hi"), replied("r1", use("a")), said("wait"), summary(1, 3), ran("a", "x"))
    assert told(view) == ["a summary", "x", "wait"]
    view.apply(Undone(n=6, target=4))
    assert told(view) == ["hi", "x", "wait"]


def test_thinking_after_a_change_is_dropped_where_the_entry_says_so():
    thought = Thinking(thinking="hm", signature="s")
    talk = (
        Switched(model=KEEPS_THINKING),
        said("hi"),
        replied("r1", thought, use("a")),
        ran("a", "x"),
        replied("r2", thought, Text(text="done")),
    )
    cleared = Cleared(ids=("a",), texts=("gone",), drops_thinking=True)
    assert told(view_of(*talk, cleared)) == ["hi", "hm", "gone", "done"]


def test_a_later_piece_of_an_answer_that_lost_its_thinking_weighs_without_it():
    thought = Thinking(thinking="a long thought indeed")
    talk = (
        Switched(model=KEEPS_THINKING),
        said("hi"),
        replied("r0", use("z")),
        ran("z"),
        replied("r1", thought, use("a"), measure=measure_content((thought, use("a")))),
        Cleared(ids=("z",), texts=("",), drops_thinking=True),
        replied("r1", thought, use("b"), measure=measure_content((thought, use("b")))),
    )
    assert view_of(*talk).total == measure_content((use("a"), use("b")))


def test_a_model_that_is_not_shown_old_thinking_sees_that_of_its_turn_only():
    thought = Thinking(thinking="hm")
    view = view_of(
        Switched(model="claude-sonnet-4-5"),
        said("hi"),
        replied("r1", thought, Text(text="yes")),
        said("and"),
        replied("r2", thought, Text(text="no")),
    )
    assert told(view) == ["hi", "yes", "and", "hm", "no"]
    assert view.messages()[1] == Message("assistant", (thought, Text(text="yes")))


def test_a_full_compaction_may_cover_all_that_is_answered():
    assert view_of(*TALK).count_compactable() == 4
    assert view_of(*TALK, said("and now?")).count_compactable() == 4
    assert view_of(*TALK, said("a reminder", hidden=True)).count_compactable() == 5
    assert view_of(*TALK, replied("r3", use("a"))).count_compactable() == 4
    assert view_of(*TALK, replied("r3", use("a")), said("hurry")).count_compactable() == 4


def test_the_frame_the_model_and_the_title_are_the_last_ones():
    view = view_of(
        Framed(measure=Measure(spaced=5)),
        Framed(measure=Measure(spaced=7)),
        replied("r1", Text(text="hi"), model="claude-haiku-5-5"),
        Switched(model="claude-opus-5-5"),
        Titled(title="old"),
        Titled(title="new"),
        Failed(what="summary", error="no"),
    )
    assert (view.model, view.title, view.total) == ("claude-opus-5-5", "new", Measure(spaced=7))


def test_an_answer_in_pieces_is_anchored_at_its_first():
    view = view_of(
        said("hi", measure=Measure(spaced=3)),
        replied("r1", use("a"), measure=Measure(calls=1)),
        ran("a"),
        replied("r1", Text(text="so"), usage=Usage(input_tokens=9, output_tokens=2)),
    )
    assert view.reported.n == 2
    assert view.reported.then == Measure(spaced=3)
    assert view.reported.usage.total_tokens == 11


def test_a_size_reported_for_a_view_that_is_no_more_is_not_an_anchor():
    usage = Usage(input_tokens=9)
    before = (*TALK, summary(1, 2), said("on"), replied("r3", use("a"), usage=usage))
    assert view_of(*before).reported.n == 7
    undone = (*before, Undone(target=5))
    assert view_of(*undone).reported is None
    assert view_of(*undone, replied("r3", Text(text="done"), usage=usage)).reported is None


def test_undone_targets_are_vetoed_until_redone():
    entries = (*TALK, Snipped(targets=(1, 2)), Undone(target=5))
    assert view_of(*entries).in_force.vetoes == {1, 2}
    assert view_of(*entries, Redone(target=5)).in_force.vetoes == frozenset()


def test_thinking_bound_to_what_was_undone_is_not_sent():
    thought = Replied(
        response_id="r",
        model="claude-opus-5-5",
        content=(Thinking(thinking="hm", signature="s"), Text(text="so")),
    )
    entries = (*TALK, Snipped(targets=(1, 2)), thought)
    assert Thinking(thinking="hm", signature="s") in view_of(*entries).messages()[-1].content
    undone = view_of(*entries, Undone(target=5)).messages()[-1].content
    assert undone[-1:] == (Text(text="so"),)
    assert not any(isinstance(block, Thinking) for block in undone)


def test_edits_that_the_provider_ignored_do_not_count_once_they_are_text():
    body = "some words of a result " * 2_000
    use = ToolUse(id="a", name="read", input={})
    entries = [
        Said(content=(Text(text="go"),)),
        Replied(response_id="r1", model="m", content=(use,), stop_reason="tool_use"),
        Ran(tool_use_id="a", content=body),
        Asked(),
        Replied(response_id="r2", model="m", content=(Text(text="ok"),), stop_reason="end_turn"),
        Cleared(ids=("a",), texts=("gone",), how="edited"),
        Said(content=(Text(text="more"),)),
        Asked(),
        Replied(response_id="r3", model="m", content=(Text(text="ok"),), stop_reason="end_turn",
                usage=Usage(input_tokens=20_000, output_tokens=2)),
        Cleared(ids=("a",), texts=("gone",), how="rewritten"),
    ]  # fmt: skip
    entries = [add_measure(entry) for entry in numbered(entries)]
    sizes = []
    for upto in (9, 10):
        view, gauge = replay(entries[:upto])
        sizes.append(gauge.size_tokens(view.total))
    assert sizes[0] > 19_000
    assert sizes[1] < 12_000


def test_shorter_inputs_and_hidden_thinking_are_sent_and_measured():
    first = ToolUse(id="a", name="Write", input={"file_path": "x", "content": "long " * 99})
    second = ToolUse(id="b", name="Write", input={"file_path": "y", "content": "text " * 99})
    thought = Thinking(thinking="hm " * 50, signature="s")
    entries = (
        Switched(model=KEEPS_THINKING),
        Said(content=(Text(text="go"),)),
        Replied(response_id="r", content=(thought, first, second), model=KEEPS_THINKING),
        Ran(tool_use_id="a", content="done"),
        Ran(tool_use_id="b", content="done"),
        Cleared(
            ids=(),
            texts=(),
            inputs=tuple(ClearedInput(id, {"content": "[cleared]"}) for id in ("a", "b")),
            thinking=(3,),
        ),
    )
    history = numbered(map(add_measure, entries))
    view = fold(history)
    answer = view.messages()[1]
    assert [block.input for block in answer.content] == [{"content": "[cleared]"}] * 2
    sent = [block for message in view.messages() for block in message.content]
    assert view.total == measure_content(sent)
    assert view.items[1].tool_uses() == [first, second]
    whole = fold(history[:-1])
    view.apply(Undone(n=7, target=6))
    assert view.messages() == whole.messages()
    assert view.total == whole.total


def test_many_calls_in_one_answer_take_linear_time():
    def seconds(count):
        ids = [f"t{i}" for i in range(count)]
        entries = numbered([replied("r", *map(use, ids)), *map(ran, ids)])
        began = time.process_time()
        view = View()
        for entry in entries:
            view.apply(entry)
            view.open_round()
            view.find_call(ids[-1])
        assert view.open_round() is None
        return time.process_time() - began

    few = min(seconds(2_000) for _ in range(3))
    assert seconds(16_000) < 8 * 4 * few  # quadratic time would be 64 times as long
