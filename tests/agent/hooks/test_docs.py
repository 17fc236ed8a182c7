"""The documentation of hooks agrees with the code."""

import json
import re
from pathlib import Path

import pytest

from longhold.agent.hooks import EVENTS, load_hooks, read_verdict
from longhold.agent.permissions import load_permissions

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page, heading=""):
    """Give the JSON examples of a page, from a heading on."""
    _, _, text = (DOCS / page).read_text(encoding="utf-8").partition(heading or "#")
    return re.findall(r"```json\n(.*?)```", text, re.S)


def test_the_example_of_hooks_loads(tmp_path):
    (tmp_path / "hooks.json").write_text(blocks("agent.md", "## Hooks")[0])
    plan = load_hooks(None, at=tmp_path)
    assert ([hook.event for hook in plan.hooks], plan.skipped) == (["PreToolUse", "Stop"], ())


def test_the_example_of_an_answer_is_understood():
    outcome = read_verdict(EVENTS["PreToolUse"], 0, blocks("agent.md", "## Hooks")[1], "")
    assert (outcome.permission, outcome.reason) == ("deny", "not on a Friday")


def test_the_example_of_rules_loads(tmp_path):
    text = blocks("security.md")[0]
    (tmp_path / "settings.json").write_text(text)
    loaded = load_permissions(None, at=tmp_path)
    assert len(loaded.rules.allow) == len(json.loads(text)["permissions"]["allow"])


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_every_event_is_on_the_page(event):
    assert f"| `{event}` |" in (DOCS / "agent.md").read_text(encoding="utf-8")
