"""Server-side context edits and their reports."""

BETA = ["context-management-2025-06-27"]
HI = {"role": "user", "content": "hi"}


def loops(count, size=200, name="Read"):
    """A history of tool loops, each with a result of about this many tokens."""
    messages = [HI]
    for index in range(count):
        use = {"type": "tool_use", "id": f"t{index}", "name": name, "input": {"path": "a " * 50}}
        result = {"type": "tool_result", "tool_use_id": f"t{index}", "content": "word " * size}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [result]})
    return messages


def edit(**fields):
    """A request's context_management with one clearing of tool uses."""
    return {"edits": [{"type": "clear_tool_uses_20250919", **fields}]}


AT_FOUR = {"trigger": {"type": "tool_uses", "value": 4}}


def test_old_results_are_cleared(api):
    made = api().create(messages=loops(5), betas=BETA, context_management=edit(**AT_FOUR))
    (applied,) = made["context_management"]["applied_edits"]
    assert applied["type"] == "clear_tool_uses_20250919"
    assert applied["cleared_tool_uses"] == 2
    assert applied["cleared_input_tokens"] > 400


def test_nothing_happens_at_the_trigger_itself(api):
    ask = {"messages": loops(4), "betas": BETA, "context_management": edit(**AT_FOUR)}
    assert api().create(**ask)["context_management"]["applied_edits"] == []


def test_count_tokens_tells_both_sizes(api):
    service = api()
    counted = service.count(messages=loops(5), betas=BETA, context_management=edit(**AT_FOUR))
    plain = service.count(messages=loops(5))
    assert counted["context_management"]["original_input_tokens"] == plain["input_tokens"]
    assert counted["input_tokens"] < plain["input_tokens"] - 400


def test_too_little_to_clear_is_left(api):
    needs = {"clear_at_least": {"type": "input_tokens", "value": 5_000}}
    made = api().create(messages=loops(5), betas=BETA, context_management=edit(**AT_FOUR, **needs))
    assert made["context_management"]["applied_edits"] == []


def test_excluded_tools_stay(api):
    made = api().create(
        messages=loops(5), betas=BETA, context_management=edit(**AT_FOUR, exclude_tools=["Read"])
    )
    assert made["context_management"]["applied_edits"] == []


def test_inputs_are_cleared_when_asked(api):
    service = api()
    ask = {"messages": loops(5), "betas": BETA}
    results = service.count(**ask, context_management=edit(**AT_FOUR))
    both = service.count(**ask, context_management=edit(**AT_FOUR, clear_tool_inputs=True))
    assert both["input_tokens"] < results["input_tokens"] - 50


def test_clearing_breaks_the_cache_at_its_point(api):
    service = api()
    system = [{"type": "text", "text": "s " * 2000, "cache_control": {"type": "ephemeral"}}]
    messages = loops(5)
    messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    ask = {"system": system, "messages": messages}
    before = service.create(**ask)["usage"]
    after = service.create(**ask, betas=BETA, context_management=edit(**AT_FOUR))["usage"]
    assert 2_000 < after["cache_read_input_tokens"] < before["cache_creation_input_tokens"]
    assert after["cache_creation_input_tokens"] > 600


def test_thinking_of_old_turns_is_cleared(api):
    thinking = {"type": "thinking", "thinking": "hm " * 100, "signature": "x"}
    answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "so"}]}
    messages = [HI, answer, HI, answer, HI]
    keep_one = {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": 1},
    }
    service = api(accepts_foreign_thinking=True)
    made = service.create(messages=messages, betas=BETA, context_management={"edits": [keep_one]})
    (applied,) = made["context_management"]["applied_edits"]
    assert (applied["cleared_thinking_turns"], applied["cleared_input_tokens"] > 100) == (1, True)
    late = {"edits": [{"type": "clear_tool_uses_20250919"}, keep_one]}
    refusal = service.refusal(messages=messages, betas=BETA, context_management=late)
    assert "must be listed first" in refusal.message
