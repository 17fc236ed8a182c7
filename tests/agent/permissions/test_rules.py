"""Allow rules match narrowly, deny rules match widely."""

import time

import pytest

from longhold.agent.permissions.places import locate
from longhold.agent.permissions.rules import (
    allows_command,
    allows_path,
    allows_url,
    denies_command,
    denies_path,
    denies_url,
    is_for_tool,
    parse_rule,
)
from longhold.core.tools.shell_reader import read_script
from longhold.errors import ConfigError


def command(text):
    """Read one simple command."""
    (only,) = read_script(text).commands
    return only


@pytest.mark.parametrize(
    ("rule", "text", "allows", "denies"),
    [
        ("Bash", "anything at all", True, True),
        ("Bash(*)", "anything at all", True, True),
        ("Bash(git status:*)", "git status", True, True),
        ("Bash(git status:*)", "git status -s", True, True),
        ("Bash(git status *)", "git status -s", True, True),
        ("Bash(git status:*)", "git statusx", False, False),
        ("Bash(git status)", "git status -s", False, True),
        ("Bash(git status)", "git status", True, True),
        ("Bash(git push:*)", "git -C x push", False, True),
        ("Bash(git push:*)", "git -c a=b --no-pager push -f", False, True),
        ("Bash(git push:*)", "/usr/bin/git push", False, True),
        ("Bash(git push:*)", "GIT push", False, True),
        ("Bash(git push:*)", "git commit -m push", False, False),
        ("Bash(rm:*)", "r''m -rf x", True, True),
        ("Bash(npm run test:*)", "npm run test unit", True, True),
        ("Bash(npm run *)", "npm run build", True, True),
        ("Bash(npm run *)", "npm install", False, False),
        ("Bash(cat a?)", "cat ab", False, False),
    ],
)
def test_a_command_rule_is_read_by_words(rule, text, allows, denies):
    assert allows_command(parse_rule(rule), command(text)) is allows
    assert denies_command(parse_rule(rule), command(text)) is denies


@pytest.mark.parametrize(
    ("rule", "path", "allows", "denies"),
    [
        ("Edit(src/**)", "src/a.py", True, True),
        ("Edit(src/**)", "src/deep/down/a.py", True, True),
        ("Edit(src/*)", "src/deep/a.py", True, True),
        ("Edit(src/*.py)", "src/a.py", True, True),
        ("Edit(src/*.py)", "src/deep/a.py", False, False),
        ("Edit(*.py)", "src/deep/a.py", True, True),
        ("Edit(src/**)", "srcx/a.py", False, False),
        ("Edit(src/**)", "src/../x", False, False),
        ("Edit(src/**)", "SRC/a.py", False, True),
        ("Edit(src/**)", "src/secret-link", False, True),
        ("Read(.env)", ".env", True, True),
        ("Read(.env)", "src/../.env", True, True),
        ("Read(/etc/**)", "/etc/passwd", True, True),
        ("Read(~/notes/**)", "~/notes/a", True, True),
        ("Read(~/notes/**)", "~/other", False, False),
        ("Edit(src/[id].py)", "src/[id].py", True, True),
        ("Edit(src/[id].py)", "src/i.py", False, False),
        ("Edit(a**b)", "a/x/b", True, True),
    ],
)
def test_a_path_rule_covers_where_a_path_leads(places, rule, path, allows, denies):
    located = locate(path, places)
    assert allows_path(parse_rule(rule), located, places) is allows
    assert denies_path(parse_rule(rule), located, places) is denies


def test_a_newline_in_a_name_hides_nothing(places):
    root = places.roots[0]
    (root / "a\nb").mkdir()
    (root / "a\nb" / ".env").write_text("")
    (root / "plain").symlink_to("a\nb/.env")
    (root / "x.py\n").write_text("")
    (root / "y").symlink_to("x.py\n")
    assert denies_path(parse_rule("Read(.env)"), locate("plain", places), places)
    assert not allows_path(parse_rule("Edit(x.py)"), locate("y", places), places)


@pytest.mark.parametrize(
    ("url", "allows", "denies"),
    [
        ("https://example.org/a", True, True),
        ("https://EXAMPLE.org:443/a", True, True),
        ("https://example.org./a", True, True),
        ("https://sub.example.org/", False, True),
        ("https://example.org.evil.net/", False, False),
        ("https://evil.net/example.org", False, False),
        ("https://evil.net/?x=https://example.org", False, False),
        ("https://example.org@evil.net/", False, True),
        ("https://evil.net\\@example.org/", False, True),
        ("https://evil.net#@example.org/", False, False),
        ("https://exаmple.org/", False, True),
        ("https://example.org\t.evil.net/", False, True),
        ("file:///etc/passwd", False, True),
        ("javascript:alert(1)", False, True),
        ("https://[::1", False, True),
        ("https://example.org:x/", False, True),
        ("", False, True),
    ],
)
def test_a_domain_rule_is_about_the_host_beyond_doubt(url, allows, denies):
    rule = parse_rule("WebFetch(domain:example.org)")
    assert allows_url(rule, url) is allows
    assert denies_url(rule, url) is denies


@pytest.mark.parametrize(
    ("denied", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "2130706433"),
        ("127.0.0.1", "127.1"),
        ("127.0.0.1", "0x7f000001"),
        ("127.0.0.1", "0177.0.0.1"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("::1", "[0:0:0:0:0:0:0:1]"),
        ("[::1]", "[::1]"),
    ],
)
def test_a_rule_denies_an_address_in_every_spelling(denied, host):
    assert denies_url(parse_rule(f"WebFetch(domain:{denied})"), f"http://{host}:80/")


def test_a_rule_denies_no_other_address():
    assert not denies_url(parse_rule("WebFetch(domain:127.0.0.1)"), "http://127.0.0.2/")


def test_a_rule_names_families_and_servers():
    assert is_for_tool(parse_rule("Edit(src/**)"), "Write")
    assert is_for_tool(parse_rule("Read(src/**)"), "Grep")
    assert not is_for_tool(parse_rule("Edit"), "Write")
    assert is_for_tool(parse_rule("mcp__tracker"), "mcp__tracker__create")
    assert is_for_tool(parse_rule("mcp__tracker__*"), "mcp__tracker__create")
    assert not is_for_tool(parse_rule("mcp__track"), "mcp__tracker__create")


@pytest.mark.parametrize("text", ["", "Bash(", "(x)", "Bash)x(", "Bash(a; b:*)", "a b"])
def test_what_is_no_rule_is_an_error(text):
    with pytest.raises(ConfigError, match="write"):
        parse_rule(text)


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "?*" * 40 + "b", "**/*a*/" * 5 + "b", "a**" * 99]
)
def test_no_pattern_takes_long(places, pattern):
    began = time.process_time()
    for path in ("a" * 240, "/".join(["a" * 8] * 200)):
        denies_path(parse_rule(f"Read({pattern})"), locate(path, places), places)
    assert time.process_time() - began < 2
