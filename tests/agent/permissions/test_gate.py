"""The gate asks once, remembers the answer, and denies if there is no user to ask."""

import subprocess

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
    await gate.check(tools["Bash"], {"command": "git add x"}, places)
    await gate.check(tools["Bash"], {"command": "git add y"}, places)
    assert [str(rule) for rule in gate.rules.allow] == ["Bash(git add:*)"]
    await gate.check(tools["Bash"], {"command": "git commit -m z"}, places)
    assert len(asked) == 2


@pytest.mark.parametrize("name", ["src/**", "a*", "b?"])
async def test_always_suggests_no_rule_for_a_name_with_wildcards(tools, places, name):
    ask, asked = asker("always", "once")
    await Gate(rules=Rules(), ask=ask).check(tools["Write"], {"file_path": name}, places)
    assert [question.suggestion for question in asked] == [None]


@pytest.mark.parametrize(
    ("asked_first", "attack"),
    [
        ("git fetch origin", "git fetch --upload-pack='touch PWNED;' ."),
        ("git fetch origin", "git fetch --upload-p='touch PWNED;' ."),
        ("git pull origin", "git pull --upload-pack 'touch PWNED;' ."),
        ("git push origin main", "git push --receive-pack='touch PWNED;' . HEAD"),
        ("git push origin main", "git push --exec='touch PWNED;' . HEAD"),
        ("git clone x y", "git clone -u 'touch PWNED;' . z"),
        ("git clone x y", "git clone -c core.sshCommand='touch PWNED' ssh://x z"),
        ("git difftool a", "git difftool -y -x 'touch PWNED;' HEAD"),
        ("make build", "make build --eval='x:;touch PWNED' x"),
        ("npm test", "npm test --script-shell=./x"),
        ("go build ./...", "go build -toolexec='touch PWNED' ./..."),
        ("uv run pytest", "uv run sh -c 'touch PWNED'"),
        ("bundle exec rake", "bundle exec sh -c 'touch PWNED'"),
        ("pip install -e .", "pip install evil-package"),
        ("kubectl get pods", "kubectl get pods --kubeconfig=x"),
        ("cargo build", "cargo build --config 'build.rustc-wrapper=\"x\"'"),
    ],
)
async def test_the_rule_that_always_adds_runs_no_other_program(tools, places, asked_first, attack):
    ask, asked = asker("always", "no")
    gate = Gate(rules=Rules(), ask=ask)
    await gate.check(tools["Bash"], {"command": asked_first}, places)
    decision = await gate.check(tools["Bash"], {"command": attack}, places)
    assert (decision.outcome, len(asked)) == ("deny", 2)


@pytest.mark.parametrize("option", ["--open-files-in-pager='touch x;'", "-Otouch", "-IO'touch x;'"])
def test_a_pager_of_git_grep_is_asked_about(tools, places, option):
    gate = Gate(rules=parse_rules(allow=("Bash(git grep:*)",)))
    command = {"command": f"git grep {option} foo"}
    assert gate.judge(tools["Bash"], command, places).outcome == "ask"


@pytest.mark.parametrize("verb", ["fetch", "push"])
@pytest.mark.parametrize("rule", ["Bash(git fetch:*)", "Bash(git push:*)", "Bash(git:*)"])
def test_an_option_of_git_that_runs_a_program_is_asked_about(tools, places, verb, rule):
    """Git runs such an option's value, whatever rule the user has for the verb."""
    option = {"fetch": "--upload-pack", "push": "--receive-pack"}[verb]
    command = f"git {verb} {option}='touch ran;' . HEAD"
    setup = "git init -q .; git -c user.name=n -c user.email=e@x commit -q --allow-empty -m x"
    subprocess.run(["bash", "-c", f"{setup}; {command}"], cwd=places.cwd, capture_output=True)
    assert (places.cwd / "ran").exists()
    gate = Gate(rules=parse_rules(allow=(rule,)))
    assert gate.judge(tools["Bash"], {"command": command}, places).outcome == "ask"


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
