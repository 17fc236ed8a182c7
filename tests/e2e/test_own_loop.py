"""One's own loop with the official SDKs: the examples of docs/adopting.md, run as they stand."""

import re
from pathlib import Path

import pytest

from holdfast.rules import violations
from holdfast.session import Session
from holdfast.simulator import running
from holdfast.simulator.brains.scripted import ScriptedBrain

PAGE = Path(__file__).parents[2] / "docs" / "adopting.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SCRIPT = 'text: Adding.\ntool: add {"a": 2, "b": 3}\n---\nerror: 529\n---\ntext: It is 5.'


@pytest.mark.parametrize("example", EXAMPLES, ids=["anthropic", "openai"])
def test_the_examples_work_as_they_stand(example, monkeypatch, capsys, tmp_path):
    """Tools, a failure that passes, an answer, and a log that any API accepts."""
    monkeypatch.chdir(tmp_path)
    with running(ScriptedBrain(SCRIPT)) as simulator:
        for name, path in (("ANTHROPIC", ""), ("OPENAI", "/v1")):
            monkeypatch.setenv(f"{name}_API_KEY", "test")
            monkeypatch.setenv(f"{name}_BASE_URL", simulator.url + path)
        exec(compile(example, str(PAGE), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith("It is 5. · ")
    with Session.resume() as session:
        assert violations(session.view.messages()) == []
        assert [m.role for m in session.view.messages()] == [
            "user",
            "assistant",
            "user",
            "assistant",
        ]
