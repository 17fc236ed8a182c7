"""A program's own loop with the official SDKs: the examples of docs/library.md, executed."""

import re
from pathlib import Path

import anthropic
import pytest

from longhold.core.messages.rules import violations
from longhold.core.models.clients import reply_from
from longhold.session.session import Session
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
EXAMPLES = [block for block in BLOCKS if "asyncio.run" in block]
SCRIPT = 'text: Adding.\ntool: add {"a": 2, "b": 3}\n---\nerror: 529\n---\ntext: It is 5.'


@pytest.mark.parametrize("example", EXAMPLES, ids=["follow", "anthropic", "betas", "openai"])
def test_the_examples_work_as_they_stand(example, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    with run_simulator(ScriptedBrain(SCRIPT)) as simulator:
        for name, path in (("ANTHROPIC", ""), ("OPENAI", "/v1")):
            monkeypatch.setenv(f"{name}_API_KEY", "test")
            monkeypatch.setenv(f"{name}_BASE_URL", simulator.url + path)
        exec(compile(example, str(PAGE), "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert said.startswith("It is 5. · ")
    assert ("context-management" in said) == ("betas" in example)
    with Session.resume() as session:
        assert violations(session.view.messages()) == []
        assert [m.role for m in session.view.messages()] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]


def test_results_in_a_user_message_are_taken_as_results(tmp_path):
    with Session.open(model="claude-sonnet-4-6", directory=tmp_path) as session:
        session.user("go")
        use = {"type": "tool_use", "id": "t", "name": "a", "input": {}}
        session._engine.record_reply(reply_from({"role": "assistant", "id": "m", "content": [use]}))
        result = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
        session.user([result, {"type": "text", "text": "and now?"}])
        last = session.view.messages()[-1].content
        assert [block.__struct_config__.tag for block in last] == ["tool_result", "text"]


@pytest.mark.filterwarnings("ignore:The model")
async def test_a_long_window_is_asked_for_by_its_header_and_not_in_the_name(tmp_path):
    with run_simulator(ScriptedBrain("text: ok")) as simulator:
        client = anthropic.AsyncAnthropic(base_url=simulator.url, api_key="test", max_retries=0)
        with Session.open(model="claude-sonnet-4-5[1M]", directory=tmp_path) as session:
            session.user("word " * 230_000)
            request = await session.prepare()
            assert request.kwargs["model"] == "claude-sonnet-4-5"
            assert request.betas.count("context-1m-2025-08-07") == 1
            said = await client.beta.messages.create(**request.kwargs, betas=list(request.betas))
            assert said.usage.cache_creation_input_tokens > 200_000
            with pytest.raises(anthropic.BadRequestError, match="too long"):
                await client.messages.create(
                    **{k: v for k, v in request.kwargs.items() if k != "context_management"}
                )
        await client.close()


async def test_a_model_whose_window_is_long_anyway_needs_no_header(tmp_path):
    with Session.open(model="claude-sonnet-5-5[1m]", directory=tmp_path) as session:
        session.user("hi")
        request = await session.prepare()
    assert request.kwargs["model"] == "claude-sonnet-5-5"
    assert not any("1m" in beta for beta in request.betas)
