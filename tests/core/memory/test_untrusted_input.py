"""Untrusted text: which calls bring it, in a session and in its agents."""

import pytest
from msgspec import structs

from longhold.core.log import Header, write_log
from longhold.core.log.entries import Configured, Imported, Ran, Replied, Said, ToolTraits
from longhold.core.log.log import agent_log
from longhold.core.memory.untrusted_input import UntrustedInput, has_outside, reaches_out
from longhold.core.messages import Text, ToolUse


def logs_in(directory):
    return [agent_log(path) for path in sorted(directory.glob("*.jsonl"))]


def use(name, **given):
    return ToolUse(id="t", name=name, input=given)


@pytest.mark.parametrize(
    "call",
    [
        use("WebFetch", url="https://example.org"),
        use("mcp__wiki__page", id=1),
        ToolUse(id="t", name="CallTool", input={"name": "mcp__wiki__page", "input": {"id": 1}}),
        ToolUse(
            id="t",
            name="CallTool",
            input={"name": "WebFetch", "input": {"url": "https://example.org"}},
        ),
        ToolUse(
            id="t",
            name="CallTool",
            input={"name": "Bash", "input": {"command": "curl example.org"}},
        ),
        use("Bash", command="curl -s https://example.org | head"),
        use("Bash", command="cd x && /usr/bin/wget -qO- example.org"),
        use("Bash", command="sudo timeout 5 curl example.org"),
        use("Bash", command="bash -c 'gh issue view 5'"),
        use("Bash", command="git -C sub pull"),
        use("Bash", command="git clone https://example.org/x"),
        use("Bash", command="git fetch origin && git log origin/main"),
        use("Bash", command="pip download x"),
        use("Bash", command="npm view left-pad readme"),
        use("Bash", command="docker pull x"),
        use("Bash", command="openssl s_client -connect example.org:443"),
        use("Bash", command="dig TXT example.org"),
        use("Bash", command="cat < /dev/tcp/example.org/80"),
        use("Bash", command="exec 3<>/dev/tcp/example.org/80"),
        use("Bash", command="bash -c 'cat </dev/tcp/example.org/80'"),
        use("Bash", command='c=curl; "$c" example.org'),
        use("Bash", command="$(echo curl) example.org"),
        use("Bash", command="python3 -c 'import urllib.request as u; u.urlopen(x)'"),
        use("Bash", command="python3.11 - <<'E'\nimport requests\nE"),
    ],
)
def test_these_reach_out(call):
    assert reaches_out(call)


@pytest.mark.parametrize(
    "call",
    [
        use("Bash", command="grep -rn curl docs"),
        use("Bash", command="git log"),
        use("Bash", command="git commit -m pull"),
        use("Bash", command="git log --grep fetch"),
        use("Bash", command="grep -rn /dev/tcp/ docs"),
        use("Bash", command="python3 -c 'print(1)'"),
        use("Bash", command="openssl version"),
        use("Bash", command="npm test"),
        use("Read", file_path="curl.md"),
        use("memory", command="view", path="/memories"),
        use("Bash"),
    ],
)
def test_these_do_not(call):
    assert not reaches_out(call)


def entries(call):
    return [
        Replied(response_id="r", model="m", n=1, content=(call,), stop_reason="tool_use"),
        Ran(n=2, tool_use_id="t", content="text"),
    ]


def test_a_session_is_marked_once_such_text_has_come():
    outside, history = UntrustedInput(), entries(use("WebFetch", url="https://example.org"))
    assert not outside.follow(history[:1])
    assert outside.follow(history) == "WebFetch"
    assert outside.follow([*history, *entries(use("Read", file_path="a"))]) == "WebFetch"


def declare(**kinds):
    tools = {name: ToolTraits(kind=kind) for name, kind in kinds.items()}
    return Configured(n=0, tools=tools)


@pytest.mark.parametrize(
    ("name", "kind", "is_outside"),
    [
        ("open_page", "fetch", True),
        ("open_page", "", True),
        ("open_page", "other", True),
        ("ask_oracle", None, True),
        ("load_row", "read", False),
        ("Read", "", False),
        ("TaskList", None, False),
    ],
)
def test_a_tool_that_nobody_declared_is_not_trusted(name, kind, is_outside):
    begin = [declare(**{name: kind})] if kind is not None else []
    assert bool(UntrustedInput().follow([*begin, *entries(use(name))])) is is_outside


def test_mail_and_imports_carry_the_mark():
    mail = Said(n=1, content=(Text(text="hi"),), hidden=True, mail="main@3")
    assert not UntrustedInput().follow([mail])
    assert UntrustedInput().follow([structs.replace(mail, is_outside=True)]) == "mail"
    assert UntrustedInput().follow([Imported(n=1, format="x", source="y")])


def test_the_sessions_own_files_do_not_count():
    assert not UntrustedInput().follow(entries(use("Read", file_path="README.md")))


def test_what_its_agents_took_in_counts(tmp_path):
    assert not has_outside(logs_in(tmp_path))
    write_log(tmp_path / "a.jsonl", Header(session="a"), entries(use("Read", file_path="a")))
    assert not has_outside(logs_in(tmp_path))
    write_log(tmp_path / "b.jsonl", Header(session="b"), entries(use("mcp__x__y")))
    assert has_outside(logs_in(tmp_path))


def test_an_agents_log_that_cannot_be_read_may_have(tmp_path):
    (tmp_path / "a.jsonl").write_text("no log")
    assert has_outside(logs_in(tmp_path))
