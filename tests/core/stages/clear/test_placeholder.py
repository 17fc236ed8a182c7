"""The line that replaces a cleared result."""

import pytest

from longhold.core.messages import Image, Text, ToolUse
from longhold.core.policy.candidates import Candidate
from longhold.core.stages.clear.placeholder import NAMES, placeholder
from longhold.core.tools.describe import description_of
from longhold.core.view.items import Result

CAME = 1_772_000_000.0  # 25 February 2026, 06:13 UTC


def cleared(name, given, text="x" * 1_234):
    use, tool = ToolUse(id="t", name=name, input=given), description_of(name)
    return Candidate(
        result=Result(id=7, tool_use_id="t", content=text),
        use=use,
        tool=tool,
        order=6,
        weight=500.0,
        before=0.0,
        paths=tool.paths_in(use.input),
    )


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        (
            "Read",
            {"file_path": "/src/app.py"},
            "[Read /src/app.py: 1,234 characters, 2026-02-25 06:13, ",
        ),
        ("Bash", {"command": "TOKEN=abc pytest -q tests"}, "[Bash pytest: 1,234 "),
        ("Bash", {"command": "curl -H 'Authorization: x' https://a"}, "[Bash curl: 1,234 "),
        ("Bash", {"command": "TOKEN='abc d' sudo curl x"}, "[Bash curl: 1,234 "),
        ("Bash", {"command": "A=$(cat secret) make"}, "[Bash A: 1,234 "),
        ("Bash", {"command": "cd '/a b' && X=1 pytest -q"}, "[Bash pytest: 1,234 "),
        ("Bash", {"command": "cd"}, "[Bash cd: 1,234 "),
        ("Bash", {"command": 5}, "[Bash: 1,234 "),
        ("shell", {"command": ["git", "log"]}, "[shell git: "),
        ("shell", {"command": ["bash", "-lc", "cd /x; make all"]}, "[shell make: "),
        ("shell", {"command": ["ls", 3]}, "[shell ls: "),
        ("WebFetch", {"url": "http://[bad"}, "[WebFetch: "),
        ("Read", {"file_path": "/a\n] b"}, "[Read /a ] b: "),
        ("WebFetch", {"url": "https://me:pw@example.com/a/b?key=1"}, "[WebFetch example.com/a/b: "),
        ("Grep", {"pattern": "secret", "path": "src"}, "[Grep src: "),
        ("Glob", {"pattern": "**/*.py"}, "[Glob: "),
        ("Read", {"file_path": "/" + "d/" * 60 + "a.py"}, "[Read …"),
        ("Read", {"file_path": 5}, "[Read: "),
        ("Bash", {"command": None}, "[Bash: "),
    ],
)
def test_it_names_what_tells_calls_apart(name, given, told):
    line = placeholder(cleared(name, given), CAME)
    assert line.startswith(told) and len(line) < 220
    assert not any(secret in line for secret in ("abc", "Authorization", "pw", "key=1", "secret"))


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("Read", "Read it again, or History #7 has it.]"),
        ("Grep", "Search again, or History #7 has it.]"),
        ("Bash", "Run it again, or History #7 has it.]"),
        ("WebFetch", "Fetch it again, or History #7 has it.]"),
        ("Edit", "cleared to make room. History #7 has it.]"),
    ],
)
def test_it_says_how_to_have_it_again(name, again):
    assert placeholder(cleared(name, {}), CAME, "History").endswith(again)


def test_one_is_one():
    picture = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})
    line = placeholder(cleared("Read", {}, (Text(text="x"), picture)), CAME)
    assert line.startswith("[Read: 1 character, 1 image, ")


def test_without_a_history_tool_none_is_named():
    assert placeholder(cleared("Edit", {}), CAME).endswith("cleared to make room.]")


def test_it_names_what_was_in_it_within_a_share_of_its_length():
    secret = "sk-ant-api03-" + "a1B2c3D4" * 12
    text = f"def load_orders():\n    return read_table(PATH, {secret!r})\n" + "# text\n" * 200
    line = placeholder(cleared("Read", {"file_path": "/a.py"}, text), CAME)
    assert line.endswith("Read it again. It names load_orders, read_table.]")
    short = "load_orders read_table"
    assert "names" not in placeholder(cleared("Read", {"file_path": "/a.py"}, short), CAME)
    many = " ".join(f"some_name_{n}" for n in range(500))
    assert placeholder(cleared("Bash", {}, many), CAME).count("some_name_") == NAMES


def test_a_name_that_remains_in_view_is_not_repeated():
    text = "def load_orders():\n    return read_table(PATH)\n" + "# text\n" * 200
    line = placeholder(cleared("Read", {"file_path": "/a.py"}, text), CAME, shown="read_table()")
    assert line.endswith("It names load_orders.]")
