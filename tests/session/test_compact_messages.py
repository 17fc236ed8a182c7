"""One call that shortens a list of messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longhold
from longhold.core.models.scripted import ScriptedModel
from longhold.errors import ConfigError

MODEL = "claude-opus-4-6"
BODY = "\n".join(f"value_{i} = compute(value_{i - 1}, {i})" for i in range(400))


def anthropic(rounds):
    """A conversation with tool calls, in the Messages API's style."""
    messages = [{"role": "user", "content": "Fix the login bug in src/login.py"}]
    for i in range(rounds):
        use = {"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"{i}.py"}}
        messages.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": f"t{i}", "content": BODY}
        messages.append({"role": "user", "content": [result]})
    return [*messages, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def chat(rounds):
    """The same for a chat endpoint."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix the login bug in src/login.py"},
    ]
    for i in range(rounds):
        function = {"name": "Read", "arguments": f'{{"file_path": "{i}.py"}}'}
        call = {"id": f"t{i}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"t{i}", "content": BODY})
    return [*messages, {"role": "assistant", "content": "Done."}]


async def test_a_list_becomes_shorter_without_a_model():
    done = await longhold.compact(anthropic(6), model=MODEL)
    assert (done.by, done.usage) == ("digest", None)
    assert done.after_tokens < done.before_tokens / 4
    assert [message["role"] for message in done.messages] == ["user"]
    assert "Fix the login bug in src/login.py" in str(done.messages)


async def test_the_style_of_a_chat_endpoint_is_kept_with_its_system_message():
    done = await longhold.compact(chat(6))
    assert done.messages[0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in done.messages] == ["system", "user"]


@pytest.mark.parametrize("style", [anthropic, chat])
async def test_system_messages_stay_in_front_wherever_they_stood(style):
    rules = [{"role": "system", "content": f"Rule {i}."} for i in (1, 2)]
    asked, *rest = [message for message in style(6) if message["role"] != "system"]
    done = await longhold.compact([rules[0], asked, rules[1], *rest], model=MODEL)
    assert done.by == "digest"
    assert done.messages[:2] == rules
    assert [message["role"] for message in done.messages] == ["system", "system", "user"]


async def test_a_system_message_counts_in_both_sizes():
    rule = {"role": "system", "content": "Mind the gap. " * 500}
    bare = await longhold.compact(anthropic(6), model=MODEL)
    ruled = await longhold.compact([rule, *anthropic(6)], model=MODEL)
    assert ruled.after_tokens - bare.after_tokens > 1_000
    assert ruled.before_tokens - bare.before_tokens > 1_000


async def test_a_message_of_an_unknown_role_is_refused():
    with pytest.raises(ConfigError, match=r"messages\[1\]: the role 'robot' is not known"):
        await longhold.compact([anthropic(1)[0], {"role": "robot", "content": "beep"}])
    with pytest.raises(ConfigError, match="these are not messages"):
        await longhold.compact([anthropic(1)[0], {"content": "who?"}])


async def test_a_list_without_a_log_does_not_tell_of_one():
    done = await longhold.compact(anthropic(6), model=MODEL)
    assert "of the log" not in str(done.messages)
    assert "from the log" not in str(done.messages)
    assert "kept nowhere else" in str(done.messages)


async def test_what_nobody_answered_stays_as_it_is():
    asked = {"role": "user", "content": "And now the logout."}
    done = await longhold.compact([*anthropic(6), asked], model=MODEL)
    assert done.messages[-1]["content"][-1] == {"type": "text", "text": "And now the logout."}


async def test_the_last_messages_can_be_kept_word_for_word():
    messages = anthropic(6)
    done = await longhold.compact(messages, model=MODEL, keep_last=3)
    kept = done.messages[-3:]
    assert kept[0]["content"][0]["id"] == "t5"
    assert kept[1]["content"][0]["content"] == BODY
    assert kept[2] == messages[-1]


async def test_strings_come_back_as_strings():
    turns = [
        {"role": role, "content": f"{role} says: {BODY}"} for role in ("user", "assistant") * 4
    ]
    done = await longhold.compact(turns)
    assert done.by == "digest"
    assert all(isinstance(message["content"], str) for message in done.messages)


async def test_a_list_that_would_not_become_shorter_comes_back_as_it_is():
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    done = await longhold.compact(messages)
    assert (done.by, done.messages) == (None, messages)
    assert (await longhold.compact([{"role": "user", "content": "Hi"}])).by is None
    assert (await longhold.compact([])).by is None


async def test_a_model_that_gives_no_summary_is_made_up_for_by_the_digest():
    client = ScriptedModel("text: no\n" * 8, name=MODEL)
    done = await longhold.compact(anthropic(6), client=client)
    assert done.by == "digest"
    assert done.after_tokens < done.before_tokens


async def test_blocks_of_an_sdk_may_stand_in_the_list():
    class Block:
        def model_dump(self, *, mode, exclude_unset):
            return {"type": "text", "text": "Done."}

    messages = anthropic(6)[:-1]
    done = await longhold.compact([*messages, {"role": "assistant", "content": [Block()]}])
    assert done.by == "digest"


async def test_what_is_no_list_of_messages_is_refused():
    with pytest.raises(ConfigError, match="role and content"):
        await longhold.compact([{"text": "hello"}])
    for none in (["hello"], {"role": "user", "content": "hello"}, "hello", 3):
        with pytest.raises(ConfigError, match="role and content"):
            await longhold.compact(none)
    with pytest.raises(ConfigError, match=r"messages\[0\].content: a object is not JSON"):
        await longhold.compact([{"role": "user", "content": object()}])
    with pytest.raises(ConfigError, match="give model="):
        await longhold.compact([], client=object())


def test_programs_without_a_loop_use_the_bridge():
    assert longhold.sync(longhold.compact(anthropic(6), model=MODEL)).by == "digest"


@given(rounds=st.integers(0, 4), keep=st.integers(0, 12), style=st.sampled_from([anthropic, chat]))
def test_what_comes_back_can_be_compacted_again_and_is_never_longer(rounds, keep, style):
    once = longhold.sync(longhold.compact(style(rounds), keep_last=keep))
    twice = longhold.sync(longhold.compact(once.messages, keep_last=keep))
    assert once.after_tokens <= once.before_tokens
    assert twice.after_tokens <= twice.before_tokens
