"""`longhold config` reads and sets values; other content of the file stays."""

import json
from pathlib import Path

import pytest

from command_line import longhold
from longhold.core.settings import home, load_settings


def test_a_setting_is_looked_up_by_name_or_group():
    assert "lifetime" in longhold("config", "get", "cache.lifetime").stdout
    group = json.loads(longhold("config", "get", "cache", "--json").stdout)["settings"]
    assert {one["name"].partition(".")[0] for one in group} == {"cache"}
    missing = longhold("config", "get", "cache.nothing")
    assert missing.returncode != 0
    assert "`longhold config` lists all" in missing.stderr


def test_setting_changes_one_line_and_leaves_the_rest():
    file = home() / "settings.toml"
    file.write_text('# mine\n[window]\nauto = true # stays\n\n[cache]\nlifetime = "5m"\n')
    done = longhold("config", "set", "cache.lifetime", "1h")
    assert done.returncode == 0, done.stderr
    assert file.read_text() == '# mine\n[window]\nauto = true # stays\n\n[cache]\nlifetime = "1h"\n'
    longhold("config", "set", "window.auto_line", "80%")
    longhold("config", "set", "budget.max_usd", "7")
    settings = load_settings()
    assert (settings.cache.lifetime, settings.window.auto_line) == ("1h", "80%")
    assert "# mine" in file.read_text()


def test_a_value_that_is_not_allowed_changes_nothing():
    done = longhold("config", "set", "cache.lifetime", "2h")
    assert done.returncode != 0
    assert "'5m', '1h'" in done.stderr
    assert not (home() / "settings.toml").exists()
    assert "no group [nothing]" in longhold("config", "set", "nothing.at_all", "1").stderr


@pytest.mark.parametrize("name", [".longhold", ".longhold/settings.toml"])
def test_a_project_s_setting_is_not_written_through_a_link(tmp_path, name):
    elsewhere, project = tmp_path / "elsewhere", tmp_path / "project"
    elsewhere.mkdir()
    (elsewhere / "settings.toml").write_text("[clear]\n")
    (project / ".git").mkdir(parents=True)
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(elsewhere / Path(name).relative_to(".longhold"))
    done = longhold("config", "set", "--project", "clear.keep_results", "9", cwd=project)
    assert done.returncode != 0 and "is a link" in done.stderr
    assert (elsewhere / "settings.toml").read_text() == "[clear]\n"
    assert (project / name).is_symlink()


def test_a_project_s_setting_goes_to_the_project(tmp_path):
    (tmp_path / ".git").mkdir()
    done = longhold("config", "set", "--project", "clear.keep_results", "9", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "keep_results = 9" in (tmp_path / ".longhold" / "settings.toml").read_text()
    refused = longhold("config", "set", "--project", "model.name", "x", cwd=tmp_path)
    assert "can only be set by the user" in refused.stderr
    over = {"LONGHOLD_CLEAR_KEEP_RESULTS": "4"}
    said = longhold("config", "set", "clear.keep_results", "8", env=over).stdout
    assert "but 4 is in force, from LONGHOLD_CLEAR_KEEP_RESULTS" in said
