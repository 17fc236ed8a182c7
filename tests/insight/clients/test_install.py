"""`longhold install`: its changes to a client's files, and that undo restores them."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command_line import longhold
from longhold.core.settings import installation


@pytest.fixture
def claude(tmp_path, monkeypatch):
    place = tmp_path / "claude"
    place.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place))
    return place


@pytest.fixture
def codex(tmp_path, monkeypatch):
    place = tmp_path / "codex"
    place.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(place))
    return place


@pytest.fixture
def pi(tmp_path, monkeypatch):
    place = tmp_path / "pi"
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(place))
    return place / "extensions" / "longhold.ts"


def read(path):
    return json.loads(path.read_text())


def test_nothing_is_changed_before_it_was_shown_and_agreed_to(claude):
    (claude / "settings.json").write_text('{"model": "opus"}')
    done = longhold("install", "claude-code", input="n\n")
    assert done.returncode != 0
    assert "statusLine: " in done.stdout
    assert "mcpServers.longhold: " in done.stdout
    assert (claude / "settings.json").read_text() == '{"model": "opus"}'
    assert not (claude / ".claude.json").exists()


def test_claude_code_gets_a_status_line_hooks_and_a_server(claude):
    mine = {"hooks": [{"type": "command", "command": "say done"}]}
    before = {"model": "opus", "hooks": {"Stop": [mine]}}
    (claude / "settings.json").write_text(json.dumps(before))
    assert longhold("install", "claude-code", "--yes").returncode == 0
    settings, state = read(claude / "settings.json"), read(claude / ".claude.json")
    assert settings["statusLine"]["command"].endswith("longhold statusline")
    assert settings["hooks"]["Stop"] == [mine]
    assert settings["hooks"]["SessionStart"][0]["matcher"] == "compact"
    assert settings["hooks"]["PreCompact"][0]["hooks"][0]["command"].endswith("longhold keep")
    assert state["mcpServers"]["longhold"]["args"][-1] == "mcp"
    assert "already" in longhold("install", "claude-code", "--yes").stdout
    assert longhold("install", "claude-code", "--undo", "--yes").returncode == 0
    assert read(claude / "settings.json") == before
    assert not (claude / ".claude.json").exists()


def test_a_status_line_of_the_user_s_own_stays(claude):
    mine = {"type": "command", "command": "my-line"}
    (claude / "settings.json").write_text(json.dumps({"statusLine": mine}))
    assert "yours is kept" in longhold("install", "claude-code", "--yes").stdout
    assert read(claude / "settings.json")["statusLine"] == mine
    longhold("install", "claude-code", "--undo", "--yes")
    assert read(claude / "settings.json") == {"statusLine": mine}


def test_codex_gets_a_server(codex):
    before = '# mine\nmodel = "gpt-5.5"\n\n[mcp_servers.other]\ncommand = "x"\n'
    (codex / "config.toml").write_text(before)
    assert longhold("install", "codex", "--yes").returncode == 0
    text = (codex / "config.toml").read_text()
    assert text.startswith(before)
    assert tomllib.loads(text)["mcp_servers"]["longhold"]["args"][-1] == "mcp"
    assert longhold("install", "codex", "--undo", "--yes").returncode == 0
    assert (codex / "config.toml").read_text() == before


def test_pi_gets_an_extension_that_calls_this_installation(pi):
    assert longhold("install", "pi", "--yes").returncode == 0
    source = pi.read_text()
    line = next(line for line in source.splitlines() if line.startswith("const PROGRAM"))
    command = json.loads(line.partition(" = ")[2].rstrip(";"))
    assert command[-1].endswith("longhold")
    assert "already" in longhold("install", "pi", "--yes").stdout
    pi.write_text(source.splitlines()[0] + "\n// of an older version\n")
    assert longhold("install", "pi", "--yes").returncode == 0
    assert pi.read_text() == source
    assert longhold("install", "pi", "--undo", "--yes").returncode == 0
    assert not pi.exists()
    assert "is not installed" in longhold("install", "pi", "--undo", "--yes").stdout


def test_an_extension_of_the_same_name_that_is_the_user_s_stays(pi):
    pi.parent.mkdir(parents=True)
    pi.write_text("// mine\n")
    for words in ([], ["--undo"]):
        done = longhold("install", "pi", "--yes", *words)
        assert done.returncode != 0
        assert f"{pi} was not written by Longhold" in done.stderr
    assert pi.read_text() == "// mine\n"


@pytest.mark.parametrize(
    ("client", "name"), [("claude-code", "settings.json"), ("codex", "config.toml")]
)
def test_a_file_that_cannot_be_read_is_named_and_left_alone(claude, codex, client, name):
    place = (claude if client == "claude-code" else codex) / name
    place.write_text("{ = ,")
    done = longhold("install", client, "--yes")
    assert done.returncode != 0
    assert f"{place} is not" in done.stderr
    assert place.read_text() == "{ = ,"


@pytest.mark.parametrize("hooks", ["[1]", '{"PreCompact": {}}', "null"])
def test_settings_of_another_shape_are_named_and_left_alone(claude, hooks):
    place = claude / "settings.json"
    place.write_text(before := f'{{"hooks": {hooks}}}')
    done = longhold("install", "claude-code", "--yes")
    assert done.returncode == 2
    assert f"{place}: " in done.stderr
    assert "fix it first" in done.stderr
    assert longhold("install", "claude-code", "--undo", "--yes").returncode == 0
    assert place.read_text() == before


@pytest.mark.parametrize("has_script", [True, False])
def test_no_command_runs_code_of_the_directory_it_is_run_in(
    claude, codex, pi, tmp_path, monkeypatch, has_script
):
    if not has_script:  # as in a clone whose script was not installed
        monkeypatch.setattr(sys, "executable", str(_python_alone(tmp_path)))
    for client in ("claude-code", "codex", "pi"):
        assert longhold("install", client, "--yes").returncode == 0
    settings, state = read(claude / "settings.json"), read(claude / ".claude.json")
    hooks = [hook for groups in settings["hooks"].values() for hook in groups[0]["hooks"]]
    written = [shlex.split(each["command"]) for each in (settings["statusLine"], *hooks)]
    servers = (
        state["mcpServers"]["longhold"],
        tomllib.loads((codex / "config.toml").read_text())["mcp_servers"]["longhold"],
    )
    written += [[server["command"], *server["args"]] for server in servers]
    written += [
        [*json.loads(re.search(r"PROGRAM: .* = (\[.*\]);", pi.read_text())[1]), "statusline"]
    ]
    hostile = tmp_path / "clone"
    hostile.mkdir()
    for name in ("longhold", "click", "msgspec", "mcp", "json", "site", "sitecustomize", "yaml"):
        (hostile / f"{name}.py").write_text("open('PWNED', 'w')\n")
    ways = {tuple(words[:-1]) for words in written}
    assert len(ways) == 1 and all(Path(words[0]).is_absolute() for words in written)
    for words in written:
        subprocess.run([*words, "--help"], cwd=hostile, check=True, capture_output=True)
    assert not (hostile / "PWNED").exists()


def _python_alone(tmp_path):
    """Make an interpreter that has no script of ours next to it."""
    place = tmp_path / "python"
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    place.chmod(0o755)
    return place


SHAPES = {
    "four spaces": '{\n    "model": "opus",\n    "permissions": {"allow": ["Bash(ls:*)", "Read"]}\n}',
    "one line": '{"model":"opus","list":[1, 2]}',
    "tabs and Windows' ends of lines": '{\r\n\t"model": "opus"\r\n}\r\n\r\n',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_undo_restores_every_byte_and_removes_what_was_created(claude, codex, pi, shape):
    settings, config = claude / "settings.json", codex / "config.toml"
    settings.write_bytes(SHAPES[shape].encode())
    config.write_bytes(b'model = "gpt-5.5"\n\n\n')
    mode = settings.stat().st_mode
    for client in ("claude-code", "codex", "pi"):
        assert longhold("install", client, "--yes").returncode == 0
    assert b"longhold" in settings.read_bytes()
    assert (claude / ".claude.json").exists() and pi.exists()
    for client in ("claude-code", "codex", "pi"):
        assert longhold("install", client, "--undo", "--yes").returncode == 0
    assert settings.read_bytes() == SHAPES[shape].encode()
    assert settings.stat().st_mode == mode
    assert config.read_bytes() == b'model = "gpt-5.5"\n\n\n'
    assert not (claude / ".claude.json").exists() and not pi.exists()


def test_what_was_changed_after_an_install_stays_and_keeps_its_shape(claude):
    settings = claude / "settings.json"
    settings.write_text(SHAPES["four spaces"])
    longhold("install", "claude-code", "--yes")
    changed = read(settings) | {"model": "sonnet"}
    settings.write_text(json.dumps(changed, indent=4))
    longhold("install", "claude-code", "--undo", "--yes")
    left = {"model": "sonnet", "permissions": {"allow": ["Bash(ls:*)", "Read"]}}
    assert settings.read_text() == json.dumps(left, indent=4)


def test_a_moved_installation_is_found_and_repaired(claude, codex, pi):
    files = [claude / "settings.json", claude / ".claude.json", codex / "config.toml", pi]
    files[0].write_text(SHAPES["four spaces"])
    for client in ("claude-code", "codex", "pi"):
        longhold("install", client, "--yes")
    good = [path.read_text() for path in files]
    here = str(Path(sys.executable).parent)
    for path in files:
        path.write_text(path.read_text().replace(here, "/old/venv/bin"))
    found = {one["name"]: one for one in json.loads(longhold("doctor", "--json").stdout)}
    for client in ("claude-code", "codex", "pi"):
        assert found[f"in {client}"]["state"] == "broken"
        assert "/old/venv/bin/longhold, which does not exist" in found[f"in {client}"]["detail"]
        assert longhold("install", client, "--yes").returncode == 0
    assert [path.read_text() for path in files] == good
    found = {one["name"]: one for one in json.loads(longhold("doctor", "--json").stdout)}
    assert {found[f"in {client}"]["state"] for client in ("claude-code", "codex", "pi")} == {"ok"}
    longhold("install", "claude-code", "--undo", "--yes")
    assert read(files[0]) == json.loads(SHAPES["four spaces"])


def test_no_server_is_registered_that_cannot_start(claude, codex, monkeypatch):
    longhold("install", "claude-code", "--yes")
    assert "longhold" in read(claude / ".claude.json")["mcpServers"]
    monkeypatch.setitem(installation.EXTRAS, "mcp", ("a_package_that_is_not_there",))
    for client in ("claude-code", "codex"):
        done = longhold("install", client, "--yes")
        assert done.returncode == 0
        assert "The history server was not added. To install what it needs: " in done.stdout
    assert not (codex / "config.toml").exists()
    assert "longhold" not in (claude / ".claude.json").read_text()
