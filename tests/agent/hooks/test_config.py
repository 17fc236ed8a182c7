"""Which hooks are configured, which match, and which need trust first."""

import json

import pytest

from longhold.agent.hooks import Hook, load_hooks, matches, select_hooks
from longhold.agent.permissions import parse_rule, trust
from longhold.errors import ConfigError


def written(*commands, event="Stop", matcher=None):
    """Write a hooks section as a settings file has it."""
    group = {"hooks": [{"type": "command", "command": command} for command in commands]}
    return json.dumps({"hooks": {event: [group | ({"matcher": matcher} if matcher else {})]}})


@pytest.mark.parametrize(
    ("matcher", "value", "expected"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Edit|Write", "NotebookEdit", False),
        ("Edit.*", "NotebookEdit", True),
        ("^Edit", "NotebookEdit", False),
        ("mcp__.*", "mcp__a__b", True),
        ("mcp__a__b", "mcp__a__bc", False),
    ],
)
def test_a_matcher_is_all_a_list_or_an_expression(matcher, value, expected):
    assert matches(matcher, value) is expected


def test_the_users_hooks_are_read_from_their_home(tmp_path):
    hook = {
        "type": "command",
        "command": "check",
        "args": ["-x"],
        "timeout": 5,
        "once": True,
        "if": "Bash(git:*)",
        "statusMessage": "checking",
    }
    content = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (tmp_path / "settings.json").write_text(json.dumps(content))
    assert load_hooks(None, at=tmp_path).hooks == (
        Hook(
            event="PreToolUse",
            command="check",
            arguments=("-x",),
            matcher="Bash",
            condition=parse_rule("Bash(git:*)"),
            timeout_seconds=5,
            is_once=True,
        ),
    )


@pytest.mark.parametrize("name", [".longhold/hooks.json", ".claude/settings.json"])
def test_a_projects_hooks_wait_for_trust(tmp_path, name):
    home, project = tmp_path / "home", tmp_path / "project"
    file = project / name
    file.parent.mkdir(parents=True)
    file.write_text(written("evil"))
    plan = load_hooks(project, at=home)
    assert (plan.hooks, len(plan.untrusted)) == ((), 1)
    trust(plan.untrusted[0], at=home)
    assert [hook.command for hook in load_hooks(project, at=home).hooks] == ["evil"]
    file.write_text(written("worse"))
    assert load_hooks(project, at=home).hooks == ()


def test_trust_does_not_travel_to_another_project(tmp_path):
    home = tmp_path / "home"
    for name in ("one", "two"):
        (tmp_path / name / ".longhold").mkdir(parents=True)
        (tmp_path / name / ".longhold" / "hooks.json").write_text(written("x"))
    trust(load_hooks(tmp_path / "one", at=home).untrusted[0], at=home)
    assert load_hooks(tmp_path / "two", at=home).hooks == ()


def test_what_is_not_understood_is_skipped_and_said(tmp_path):
    content = {
        "hooks": {
            "SomethingLater": [{"hooks": []}],
            "Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}],
        }
    }
    (tmp_path / "hooks.json").write_text(json.dumps(content))
    plan = load_hooks(None, at=tmp_path)
    assert plan.hooks == ()
    assert [("SomethingLater" in line, "prompt" in line) for line in plan.skipped] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.parametrize(
    "section",
    [
        {"Stop": {}},
        {"Stop": [{"hooks": "x"}]},
        {"PreToolUse": [{"matcher": "(", "hooks": []}]},
        {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": "soon"}]}]},
    ],
)
def test_a_malformed_section_is_an_error(tmp_path, section):
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": section}))
    with pytest.raises(ConfigError, match=r"hooks\.json: hooks\."):
        load_hooks(None, at=tmp_path)


def test_identical_hooks_are_picked_once():
    hooks = (
        Hook(event="PreToolUse", command="x", matcher="Bash"),
        Hook(event="PreToolUse", command="x", matcher="*"),
        Hook(event="PreToolUse", command="y"),
        Hook(event="Stop", command="z"),
    )
    picked = select_hooks(hooks, "PreToolUse", {"tool_name": "Bash"})
    assert [hook.command for hook in picked] == ["x", "y"]


@pytest.mark.parametrize(
    ("command", "applies"),
    [
        ("git push", True),
        ("ls && git push", True),
        ("bash -c 'git push'", True),
        ("ls", False),
        ("ls '", True),
    ],
)
def test_a_condition_is_held_against_the_command(command, applies):
    hook = Hook(event="PreToolUse", command="x", condition=parse_rule("Bash(git push:*)"))
    fields = {"tool_name": "Bash", "tool_input": {"command": command}}
    assert bool(select_hooks((hook,), "PreToolUse", fields)) is applies
    assert not select_hooks((hook,), "PreToolUse", {"tool_name": "Edit", "tool_input": {}})
