"""Both server compactions: blocks, iterations, and error codes."""

import pytest

from longhold.simulator.brains import ScriptedBrain

ON_DEMAND = ["compact-2026-09-04"]
THRESHOLD = ["compact-2026-01-12"]
HI = {"role": "user", "content": "hi"}
SUMMARISE = {"type": "summarize"}
LONG = {"role": "user", "content": "word " * 60_000}


def past(**fields):
    """A threshold compaction at its smallest trigger."""
    trigger = {"type": "input_tokens", "value": 50_000}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger, **fields}]}


def compacted(service, **ask):
    """Compact a short conversation on demand and give the block."""
    made = service.create(messages=[HI], compaction=SUMMARISE, betas=ON_DEMAND, **ask)
    return made["content"][0]


def test_on_demand_returns_only_a_signed_block(api):
    service = api(ScriptedBrain("text: We said hi."))
    made = service.create(messages=[HI], compaction=SUMMARISE, betas=ON_DEMAND)
    (block,) = made["content"]
    assert (block["type"], block["content"]) == ("compaction", "We said hi.")
    assert block["signature"]
    assert made["stop_reason"] == "compaction"
    assert made["usage"]["input_tokens"] == made["usage"]["output_tokens"] == 0
    (iteration,) = made["usage"]["iterations"]
    assert iteration["type"] == "compaction"
    assert iteration["input_tokens"] > 0


def test_the_block_stands_for_what_it_summarises(api):
    brain = ScriptedBrain("text: We said hi.\n---\ntext: on we go")
    service = api(brain)
    block = compacted(service)
    service.create(messages=[{"role": "assistant", "content": [block]}, HI], betas=ON_DEMAND)
    texts = [b["text"] for m in brain.requests[-1].messages for b in m["content"]]
    assert texts == ["We said hi.", "hi"]


def test_instructions_reach_the_brain(api):
    brain = ScriptedBrain("text: a\n---\ntext: b")
    service = api(brain)
    for instructions in ("Only the plan.", "  "):
        service.create(
            messages=[HI],
            compaction={"type": "summarize", "instructions": instructions},
            betas=ON_DEMAND,
        )
    assert [r.instructions for r in brain.requests] == ["Only the plan.", None]
    assert {r.purpose for r in brain.requests} == {"summary"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"content": "Other."}, "compaction_content_mismatch"),
        ({"signature": "bm90IG91cnM="}, "compaction_signature_invalid"),
        ({"tool_changes": [{"type": "tool_addition"}]}, "compaction_tool_changes_mismatch"),
    ],
)
def test_altered_blocks_are_refused(api, change, code):
    service = api(ScriptedBrain("text: We said hi."))
    block = {**compacted(service), **change}
    messages = [{"role": "assistant", "content": [block]}, HI]
    assert service.refusal(messages=messages, betas=ON_DEMAND).code == code


def test_misplaced_and_doubled_blocks_are_refused(api):
    service = api(ScriptedBrain("text: We said hi."))
    carrier = {"role": "assistant", "content": [compacted(service)]}
    assert service.refusal(messages=[HI, carrier, HI]).code == "compaction_block_misplaced"
    assert service.refusal(messages=[carrier, HI, carrier, HI]).code == "compaction_block_ambiguous"


def test_an_unfinished_turn_is_refused(api):
    use = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    messages = [HI, {"role": "assistant", "content": [use]}]
    refusal = api().refusal(messages=messages, compaction=SUMMARISE, betas=ON_DEMAND)
    assert refusal.code == "compaction_incomplete_turn"


def test_forbidden_combinations(api):
    for extra in ({"stop_sequences": ["x"]}, {"tool_choice": {"type": "any"}, "tools": [TOOL]}):
        refusal = api().refusal(messages=[HI], compaction=SUMMARISE, betas=ON_DEMAND, **extra)
        assert "cannot be combined" in refusal.message


TOOL = {"name": "Read", "input_schema": {"type": "object"}}


def test_past_the_threshold_the_answer_opens_with_a_summary(api):
    brain = ScriptedBrain("text: A long story.\n---\ntext: on we go")
    made = api(brain).create(messages=[LONG], betas=THRESHOLD, context_management=past())
    assert [block["type"] for block in made["content"]] == ["compaction", "text"]
    kinds = [iteration["type"] for iteration in made["usage"]["iterations"]]
    assert kinds == ["compaction", "message"]
    assert made["usage"]["iterations"][0]["input_tokens"] > 50_000
    assert made["usage"]["input_tokens"] < 100
    assert brain.requests[1].messages[0]["content"][0]["text"] == "A long story."


def test_everything_before_the_block_is_ignored(api):
    brain = ScriptedBrain("text: A long story.\n---\ntext: on we go\n---\ntext: yes")
    service = api(brain)
    ask = {"betas": THRESHOLD, "context_management": past()}
    made = service.create(messages=[LONG], **ask)
    history = [LONG, {"role": "assistant", "content": made["content"]}, HI]
    again = service.create(messages=history, **ask)
    assert [block["type"] for block in again["content"]] == ["text"]
    assert again["usage"]["input_tokens"] < 100


def test_it_pauses_when_asked(api):
    service = api(ScriptedBrain("text: A long story.\n---\ntext: resumed"))
    ask = {"betas": THRESHOLD, "context_management": past(pause_after_compaction=True)}
    made = service.create(messages=[LONG], **ask)
    assert made["stop_reason"] == "compaction"
    assert [block["type"] for block in made["content"]] == ["compaction"]
    resumed = service.create(
        messages=[LONG, {"role": "assistant", "content": made["content"]}], **ask
    )
    assert resumed["content"][0]["text"] == "resumed"


def test_a_small_trigger_is_refused(api):
    trigger = {"type": "input_tokens", "value": 49_999}
    edits = {"edits": [{"type": "compact_20260112", "trigger": trigger}]}
    refusal = api().refusal(messages=[HI], betas=THRESHOLD, context_management=edits)
    assert "at least 50000 input tokens" in refusal.message


def test_kept_thinking_stays_valid_behind_a_signed_block(api):
    script = (
        "think: First.\ntext: one\n---\nthink: Second.\ntext: two\n---\ntext: Sum.\n---\ntext: x"
    )
    service = api(ScriptedBrain(script))
    model = "claude-opus-5-5"
    head, tail = [HI], []
    one = service.create(model=model, messages=head)
    head.append({"role": "assistant", "content": one["content"]})
    tail.append({"role": "user", "content": "next"})
    two = service.create(model=model, messages=[*head, *tail])
    tail += [{"role": "assistant", "content": two["content"]}, {"role": "user", "content": "last"}]
    block = service.create(model=model, messages=head, compaction=SUMMARISE, betas=ON_DEMAND)
    kept = [{"role": "assistant", "content": block["content"]}, *tail]
    assert service.create(model=model, messages=kept)["content"][0]["text"] == "x"
    refusal = service.refusal(model=model, messages=kept, system="changed")
    assert "bound to a different conversation" in refusal.message
