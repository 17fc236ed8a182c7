"""Clearing by the provider: what is fixed, sent and read back."""

from dataclasses import replace

from msgspec import structs

from longhold.core.log.entries import Framed
from longhold.core.request.request import Caching, build
from longhold.core.request.server_side import (
    BETA,
    EDITS_BETA,
    cleared_count,
    cleared_tokens,
    declare_clearing,
    is_shortened,
    update_excluded,
)
from longhold.core.settings import ClearSettings, WindowSettings
from longhold.core.view.window import window_for

MODEL = "claude-opus-5"
TOOLS = tuple({"name": name} for name in ("Read", "Ask", "Bash", "TodoWrite"))
ON = ClearSettings(server=True)
WINDOW = window_for(MODEL, WindowSettings(limit_tokens=1_000_000))


def test_nothing_is_asked_of_the_provider_unless_it_is_switched_on():
    frame = Framed(tools=TOOLS)
    assert declare_clearing(frame, MODEL, ClearSettings(), WINDOW) == frame


def test_the_request_says_when_how_much_and_whose_not():
    frame = declare_clearing(Framed(tools=TOOLS), MODEL, ON, WINDOW)
    assert frame.betas == (BETA,)
    assert frame.options["context_management"]["edits"] == [
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": 180_000},
            "keep": {"type": "tool_uses", "value": 5},
            "clear_at_least": {"type": "input_tokens", "value": 140_000},
            "exclude_tools": ["Ask", "TodoWrite"],
        }
    ]


def test_inputs_of_writing_tools_go_with_their_results():
    def cleared(frame):
        return frame.options["context_management"]["edits"][-1].get("clear_tool_inputs")

    writing = (*TOOLS, {"name": "Write"})
    frame = declare_clearing(Framed(tools=writing), MODEL, ON, WINDOW)
    assert cleared(frame) == ["Write"]
    more = update_excluded(structs.replace(frame, tools=(*writing, {"name": "Edit"})))
    assert cleared(more) == ["Edit", "Write"]
    kept = declare_clearing(Framed(tools=writing), MODEL, replace(ON, inputs=False), WINDOW)
    assert cleared(kept) is None


def test_thinking_is_kept_where_there_is_any():
    thinking = Framed(options={"thinking": {"type": "adaptive"}})
    for frame, model in ((thinking, MODEL), (Framed(), "claude-fable-5")):
        edits = declare_clearing(frame, model, ON, WINDOW).options["context_management"]["edits"]
        assert edits[0] == {"type": "clear_thinking_20251015", "keep": "all"}


def test_a_small_window_is_cleared_before_its_warning_line():
    window = window_for(MODEL, WindowSettings(limit_tokens=200_000))
    edit = declare_clearing(Framed(), MODEL, ON, window).options["context_management"]["edits"][0]
    assert edit["trigger"]["value"] == window.warning_tokens


def test_what_the_user_asked_for_stays():
    own = Framed(options={"context_management": {"edits": []}})
    assert declare_clearing(own, MODEL, ON, WINDOW).options == own.options


def test_tools_that_come_later_are_excluded_too():
    frame = declare_clearing(Framed(tools=TOOLS), MODEL, ON, WINDOW)
    more = replace_tools(frame, (*TOOLS, {"name": "mcp__db__query"}))
    edit = update_excluded(more).options["context_management"]["edits"][0]
    assert edit["exclude_tools"] == ["Ask", "TodoWrite", "mcp__db__query"]
    assert update_excluded(Framed(tools=TOOLS)) == Framed(tools=TOOLS)


def replace_tools(frame, tools):
    return Framed(tools=tools, options=frame.options, betas=frame.betas)


def test_a_model_that_knows_neither_is_sent_neither():
    frame = declare_clearing(Framed(), "simulated/claude-opus-5", ON, WINDOW)
    assert set(frame.betas) == {BETA, EDITS_BETA}
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    sent = build(frame, messages, model="my-own-model", max_output_tokens=5, caching=Caching())
    assert sent.betas == () and "context_management" not in sent.kwargs
    kept = build(frame, messages, model=MODEL, max_output_tokens=5, caching=Caching())
    assert kept.betas == (BETA,) and "context_management" in kept.kwargs


def test_switched_off_nothing_is_latched():
    off = replace(ON, on=False)
    assert declare_clearing(Framed(), "simulated/claude-opus-5", off, WINDOW) == Framed()


def test_counts_are_read_from_what_was_applied():
    applied = [
        {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 9},
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4},
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": "many"},
    ]
    assert cleared_count(applied) == 4 and is_shortened(applied)
    applied[1]["cleared_input_tokens"] = 700
    assert cleared_tokens(applied) == 700
    assert not is_shortened(applied[2:])
