"""The gate asks once, remembers, and denies where nobody can be asked."""

import pytest

from longhold.agent.permissions import Answer, Decision, Gate, Rules, combine, parse_rules


def asker(*choices):
    """Make somebody who answers in turn, and the list of what they were asked."""
    asked = []
    answers = iter(choices)

    async def ask(question):
        asked.append(question)
        return Answer(choice=next(answers))

    return ask, asked


async def test_a_denial_is_remembered(tools, places):
    ask, asked = asker("no")
    gate = Gate(rules=Rules(), ask=ask)
    first = await gate.check(tools["Bash"], {"command": "touch a"}, places)
    second = await gate.check(tools["Bash"], {"command": "touch a"}, places)
    assert (first.outcome, second.outcome, len(asked)) == ("deny", "deny", 1)
    assert (first.by_user, second.by_user) == (True, False)
    assert "before" in second.reason


async def test_denials_can_be_forgotten(tools, places):
    ask, asked = asker("no", "once")
    gate = Gate(rules=Rules(), ask=ask)
    await gate.check(tools["Bash"], {"command": "touch a"}, places)
    gate.forget_denials()
    decision = await gate.check(tools["Bash"], {"command": "touch a"}, places)
    assert (decision.outcome, len(asked)) == ("allow", 2)


async def test_always_adds_the_suggested_rule(tools, places):
    ask, asked = asker("always", "once")
    gate = Gate(rules=Rules(), ask=ask)
    await gate.check(tools["Bash"], {"command": "npm install x"}, places)
    await gate.check(tools["Bash"], {"command": "npm install y"}, places)
    assert [str(rule) for rule in gate.rules.allow] == ["Bash(npm install:*)"]
    await gate.check(tools["Bash"], {"command": "npm publish"}, places)
    assert len(asked) == 2


async def test_a_dangerous_command_is_suggested_only_word_for_word(tools, places):
    ask, asked = asker("always", "no")
    gate = Gate(rules=Rules(), ask=ask)
    await gate.check(tools["Bash"], {"command": "git push -f origin x"}, places)
    again = await gate.check(tools["Bash"], {"command": "git push -f origin x"}, places)
    other = await gate.check(tools["Bash"], {"command": "git push -f origin main"}, places)
    assert (again.outcome, other.outcome) == ("allow", "deny")
    assert str(asked[0].suggestion) == "Bash(git push -f origin x)"


async def test_without_anyone_to_ask_asking_is_denying(tools, places):
    gate = Gate(rules=Rules())
    decision = await gate.check(tools["Bash"], {"command": "touch a"}, places)
    assert decision.outcome == "deny"
    assert not decision.by_user
    assert "no user to ask" in decision.reason


async def test_a_yes_once_is_not_remembered(tools, places):
    ask, asked = asker("once", "once")
    gate = Gate(rules=Rules(), ask=ask)
    for _ in range(2):
        await gate.check(tools["Edit"], {"file_path": "src/a.py"}, places)
    assert len(asked) == 2


async def test_a_hook_can_allow_what_would_be_asked_but_not_what_is_denied(tools, places):
    allow = Decision(outcome="allow", reason="a hook said so")
    gate = Gate(rules=parse_rules(deny=("Bash(curl:*)",)))
    assert (
        await gate.check(tools["Bash"], {"command": "touch a"}, places, hook=allow)
    ).outcome == "allow"
    assert (
        await gate.check(tools["Bash"], {"command": "curl x"}, places, hook=allow)
    ).outcome == "deny"


@pytest.mark.parametrize(
    ("ours", "theirs", "joined"),
    [
        ("allow", "deny", "deny"),
        ("allow", "ask", "ask"),
        ("ask", "allow", "allow"),
        ("deny", "allow", "deny"),
        ("ask", None, "ask"),
    ],
)
def test_a_hook_and_the_rules_are_joined(ours, theirs, joined):
    hook = Decision(outcome=theirs, reason="") if theirs else None
    assert combine(Decision(outcome=ours, reason=""), hook).outcome == joined


async def test_only_the_users_own_no_is_remembered(tools, places):
    ask, asked = asker("once")
    gate = Gate(rules=Rules(), mode="plan", ask=ask)
    assert (await gate.check(tools["Bash"], {"command": "touch a"}, places)).outcome == "deny"
    gate.switch_mode("ask")
    assert (await gate.check(tools["Bash"], {"command": "touch a"}, places)).outcome == "allow"
    assert len(asked) == 1
