"""Thinking that clients send back: bound, dropped, refused, stripped."""

from longhold.core.request.billing.thinking import BINDING_BETA
from longhold.simulator.brains import ScriptedBrain

SCRIPT = "think: First.\ntool: Read {}\n---\nthink: Second.\ntext: done\n---\ntext: end"
HI = {"role": "user", "content": "hi"}
NEXT = {"role": "user", "content": "and now?"}
BOUND = "claude-opus-5-5"


def first_answer(service, model, **options):
    """Play the first answer of the script: thinking and a tool call."""
    made = service.create(model=model, messages=[HI], **options)
    result = {"type": "tool_result", "tool_use_id": made["content"][-1]["id"], "content": "ok"}
    return [
        HI,
        {"role": "assistant", "content": made["content"]},
        {"role": "user", "content": [result]},
    ]


def two_turns(service, model, **options):
    """Play the script until a new user message."""
    history = first_answer(service, model, **options)
    made = service.create(model=model, messages=history, **options)
    return [*history, {"role": "assistant", "content": made["content"]}, NEXT]


def test_unchanged_thinking_is_accepted(api):
    service = api(ScriptedBrain(SCRIPT))
    made = service.create(model=BOUND, messages=two_turns(service, BOUND))
    assert made["content"][0]["text"] == "end"


def test_markers_do_not_count_as_changes(api):
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, BOUND)
    history[0] = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    }
    assert service.create(model=BOUND, messages=history)["content"]


def test_an_edited_history_is_refused(api):
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, BOUND)
    history[0] = {"role": "user", "content": "hello"}
    refusal = service.refusal(model=BOUND, messages=history)
    assert refusal.status == 400
    assert "messages.1.content.0: The block is bound to a different conversation" in refusal.message


def test_drop_block_lets_it_fall(api):
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, BOUND)
    history[0] = {"role": "user", "content": "hello"}
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    made = service.create(model=BOUND, messages=history, thinking=thinking, betas=[BINDING_BETA])
    assert made["input_transformations"] == [
        {
            "type": "thinking_dropped",
            "path": f"messages.{index}.content.0",
            "reason": "prefix_binding_mismatch",
        }
        for index in (1, 3)
    ]


def test_older_accounts_are_only_told(api):
    service = api(ScriptedBrain(SCRIPT), enforces_binding=False)
    history = two_turns(service, BOUND)
    history[0] = {"role": "user", "content": "hello"}
    made = service.create(model=BOUND, messages=history, betas=[BINDING_BETA])
    kinds = {change["type"] for change in made["input_transformations"]}
    assert kinds == {"thinking_mismatch_allowed"}


def test_thinking_may_go_from_the_front_only(api):
    script = SCRIPT.replace("text: end", "think: Third.\ntext: end\n---\ntext: last")
    service = api(ScriptedBrain(script))
    history = two_turns(service, BOUND)
    made = service.create(model=BOUND, messages=history)
    whole = [*history, {"role": "assistant", "content": made["content"]}, NEXT]
    front = [*whole]
    front[1] = {"role": "assistant", "content": whole[1]["content"][1:]}
    assert service.create(model=BOUND, messages=front)["content"]
    middle = [*whole]
    middle[3] = {"role": "assistant", "content": whole[3]["content"][1:]}
    assert "bound to a different" in service.refusal(model=BOUND, messages=middle).message


def test_unbound_models_accept_an_edited_history(api):
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, "claude-opus-5")
    history[0] = {"role": "user", "content": "hello"}
    assert service.create(model="claude-opus-5", messages=history)["content"]


def test_altered_text_is_refused(api):
    service = api(ScriptedBrain(SCRIPT))
    history = first_answer(service, "claude-opus-5")
    history[1]["content"][0]["thinking"] = "Other."
    assert (
        "in the latest assistant message cannot be modified"
        in service.refusal(model="claude-opus-5", messages=history).message
    )
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, "claude-opus-5")
    history[1]["content"][0]["thinking"] = "Other."
    assert (
        "messages.1.content.0: Invalid `signature`"
        in service.refusal(model="claude-opus-5", messages=history).message
    )


def test_another_model_does_not_read_it(api):
    service = api(ScriptedBrain(SCRIPT))
    history = two_turns(service, "claude-opus-5")
    made = service.create(model="claude-opus-4-8", messages=history, betas=[BINDING_BETA])
    reasons = {change["reason"] for change in made["input_transformations"]}
    assert reasons == {"model_binding_mismatch"}


def test_foreign_signatures_can_be_allowed(api):
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c29tZW9uZSBlbHNl"}
    text = {"type": "text", "text": "so"}
    history = [HI, {"role": "assistant", "content": [thinking, text]}, NEXT]
    assert api().refusal(messages=history).status == 400
    assert api(accepts_foreign_thinking=True).create(messages=history)["content"]


def test_older_models_strip_earlier_turns(api):
    ask = {"model": "claude-sonnet-4-5", "version": "2023-06-01"}
    service = api(accepts_foreign_thinking=True)

    def tokens(last, *, has_thinking):
        thinking = {"type": "thinking", "thinking": "long " * 100, "signature": "x"}
        use = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
        blocks = [thinking, use] if has_thinking else [use]
        history = [HI, {"role": "assistant", "content": blocks}, last]
        return service.count(messages=history, **ask)["input_tokens"]

    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    loop = {"role": "user", "content": [result]}
    turn = {"role": "user", "content": [result, {"type": "text", "text": "go on"}]}
    assert tokens(loop, has_thinking=True) > tokens(loop, has_thinking=False) + 100
    assert tokens(turn, has_thinking=True) == tokens(turn, has_thinking=False)


def test_omitted_thinking_keeps_its_signature(api):
    service = api(ScriptedBrain(SCRIPT))
    thinking = {"type": "adaptive", "display": "omitted"}
    history = two_turns(service, BOUND, thinking=thinking)
    assert history[1]["content"][0]["thinking"] == ""
    assert service.create(model=BOUND, messages=history, thinking=thinking)["content"]


def test_disabled_thinking_is_not_said(api):
    made = api(ScriptedBrain("think: Hm.\ntext: so")).create(
        messages=[HI], thinking={"type": "disabled"}
    )
    assert [block["type"] for block in made["content"]] == ["text"]
