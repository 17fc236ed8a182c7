"""What a command may reach: its directories, the files it opens, the programs it finds."""

import os
import shutil
import subprocess
from dataclasses import replace

import pytest

from longhold.agent.permissions import decide, examine, parse_rules
from longhold.agent.permissions.call import MAX_BASES, find_reach
from longhold.agent.tools.git import reading_variables
from longhold.core.tools.shell_reader import read_script


def _outcome(tools, command, places):
    call = examine(tools["Bash"], {"command": command}, places)
    return decide(call, parse_rules(), "ask", places).outcome


@pytest.fixture
def trap(places):
    """A program of the project that is called like one of the system's, and its trace."""
    directory, trace = places.cwd / "0", places.cwd / "trace"
    directory.mkdir()
    (directory / "cat").write_text(f"#!/bin/sh\n/usr/bin/touch {trace}\n")
    (directory / "cat").chmod(0o755)
    return directory, trace


@pytest.mark.parametrize(
    "command", ["printf -- %n PATH; cat src/a.py", "printf -- 'x%n' PATH\ncat src/a.py"]
)
def test_a_format_assigns_no_variable(tools, places, trap, command):
    _, trace = trap
    subprocess.run(["bash", "-c", "printf -- %n PATH; cat src/a.py"], cwd=places.cwd)
    assert trace.exists()
    assert _outcome(tools, command, places) == "ask"


def test_an_unasked_command_finds_no_program_by_a_relative_path(tools, places, trap):
    directory, trace = trap
    variables = {"PATH": f"{directory.name}:.::{os.environ['PATH']}"}
    assert _outcome(tools, "cat src/a.py", places) == "allow"
    for given in (reading_variables(variables), variables):
        assert not trace.exists()
        subprocess.run(["bash", "-c", "cat src/a.py"], cwd=places.cwd, env=given, check=True)
    assert trace.exists()  # the user's own environment would have led there


def test_a_link_in_the_project_is_the_projects_program(tools, places, monkeypatch):
    (places.cwd / "bin").mkdir()
    (places.cwd / "bin" / "cat").symlink_to(shutil.which("touch"))
    assert _outcome(tools, "cat src/a.py", places) == "allow"
    monkeypatch.setenv("PATH", f"{places.cwd / 'bin'}:{os.environ['PATH']}")
    assert _outcome(tools, "cat src/a.py", places) == "ask"


@pytest.mark.parametrize("command", ["egrep x src/a.py", "fgrep x src/a.py", "grep x src/a.py"])
def test_a_script_that_runs_grep_may_find_the_projects(tools, places, monkeypatch, command):
    (places.cwd / "bin").mkdir()
    (places.cwd / "bin" / "grep").write_text(f"#!/bin/sh\n/usr/bin/touch {places.cwd}/ran\n")
    (places.cwd / "bin" / "grep").chmod(0o755)
    assert _outcome(tools, command, places) == "allow"
    monkeypatch.setenv("PATH", f"{places.cwd / 'bin'}:/usr/bin:/bin")
    subprocess.run(["bash", "-c", command], cwd=places.cwd, capture_output=True)
    assert (places.cwd / "ran").exists()
    assert _outcome(tools, command, places) == "ask"


def test_a_glob_lists_no_directory_behind_a_link(tools, places):
    """The shell lists `link` for the second part of the pattern, although nothing matches."""
    assert _outcome(tools, "echo */none*", places) == "ask"
    (places.cwd / "link").unlink()
    assert _outcome(tools, "echo */none*", places) == "allow"


@pytest.mark.parametrize(
    "command",
    ["rg -.esecret ../outside/secret", "rg -.e secret ../outside/secret", "grep -ie x link/secret"],
)
def test_no_file_passes_for_the_pattern(tools, places, command):
    assert _outcome(tools, command, places) == "ask"


def test_many_steps_are_not_followed_everywhere(tools, places):
    script = read_script("; ".join([*(f"cd d{number}" for number in range(40)), "cat a"]))
    reach = find_reach(script, places)
    assert len(reach.bases) <= MAX_BASES
    assert reach.is_unseen
    assert _outcome(tools, "cd src && cd . && cd . && cat a.py", places) == "allow"


@pytest.mark.parametrize(
    "command", ["cat -- -A", "cat -A -A", "cut -c1- -- -dx", "head -- -secret"]
)
def test_a_link_with_the_name_of_an_option_is_a_link(tools, places, command):
    assert _outcome(tools, command, places) == "allow"
    for name in ("-A", "-dx", "-secret"):
        (places.cwd / name).symlink_to(places.cwd.parent / "outside" / "secret")
    assert _outcome(tools, command, places) == "ask"
    if "--" in command.split():
        done = subprocess.run(["bash", "-c", command], cwd=places.cwd, capture_output=True)
        assert done.stdout == b"secret\n"


@pytest.mark.parametrize(
    ("command", "name"), [("column -", "-"), ("echo x | column -", "-"), ("cat -- --", "--")]
)
def test_a_link_called_as_a_dash_is_a_link(tools, places, command, name):
    assert _outcome(tools, command, places) == "allow"
    (places.cwd / name).symlink_to(places.cwd.parent / "outside" / "secret")
    assert _outcome(tools, command, places) == "ask"
    if command.startswith("cat"):  # `column` is not part of the tests' programs
        done = subprocess.run(["bash", "-c", command], cwd=places.cwd, capture_output=True)
        assert done.stdout == b"secret\n"


@pytest.mark.parametrize("command", ["grep -v - link/secret", "egrep -a -U - link/secret"])
def test_a_lone_dash_is_the_pattern_and_what_follows_a_file(tools, places, command):
    assert _outcome(tools, command, places) == "ask"


@pytest.fixture
def below(places):
    """A directory below the root, in which links lead to the home directory and elsewhere."""
    deep, sub = places.cwd / "deep" / "t", places.cwd / "sub"
    deep.mkdir(parents=True)
    (sub / "a").mkdir(parents=True)
    (places.home / ".netrc").write_text("machine example password secret\n")
    (sub / "a" / "link").symlink_to(deep)
    (sub / "a" / "f").symlink_to(places.home / ".netrc")
    (sub / "a" / "w").symlink_to(places.home / "written")
    return replace(places, cwd=sub)


@pytest.mark.parametrize(
    "command",
    [
        "cd a/link && cd .. && cat f",
        "cd a/link; cd ..; cat f",
        "cd a; cd link; cd ..; cat f",
        "pushd a/link && cd .. && cat f",
        "cd a/link && cd ../ && echo evil > w",
    ],
)
def test_bash_goes_back_by_name_after_a_link(tools, below, command):
    subprocess.run(["bash", "-c", command], cwd=below.cwd, check=True, capture_output=True)
    assert _outcome(tools, command, below) == "ask"
    assert _outcome(tools, "cd a/link && cat k", below) == "allow"


@pytest.mark.parametrize(
    "command",
    ["cd; rg secret", "cd; find", "cd; ls", "cd && tree", "cd -P; rg x", "cd --; ls", "pushd; ls"],
)
def test_a_cd_without_a_directory_goes_home_and_is_asked_about(tools, places, command):
    assert _outcome(tools, command, places) == "ask"


def test_no_file_at_home_is_written_through_a_link_and_back(tools, below):
    call = examine(tools["Bash"], {"command": "cd a/link && cd .. && echo evil > w"}, below)
    assert decide(call, parse_rules(), "accept_edits", below).outcome == "ask"


@pytest.mark.parametrize("command", ["cd '~' && cat f", 'cd "~"; cat f', "cd '~/sub' && cat f"])
def test_a_quoted_tilde_is_a_directory_of_that_name(tools, places, command):
    at_home = replace(places, roots=(*places.roots, places.home))
    assert _outcome(tools, command, at_home) == "allow"
    for place in (places.cwd / "~", places.cwd / "~" / "sub"):
        place.mkdir()
        (place / "f").symlink_to(places.cwd.parent / "outside" / "secret")
    done = subprocess.run(["bash", "-c", command], cwd=places.cwd, capture_output=True)
    assert done.stdout == b"secret\n"
    assert _outcome(tools, command, at_home) == "ask"
