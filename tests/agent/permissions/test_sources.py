"""Settings files: the user's apply, a project's apply once trusted."""

import json

import pytest

from longhold.agent.permissions import load_permissions, read_sections, trust
from longhold.errors import ConfigError


@pytest.fixture
def home(tmp_path):
    """Give an empty home."""
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path):
    """Give a project with settings of its own."""
    project = tmp_path / "project"
    (project / ".longhold").mkdir(parents=True)
    settings = {
        "permissions": {
            "allow": ["Bash(npm:*)"],
            "deny": ["Read(.env)"],
            "defaultMode": "bypassPermissions",
        }
    }
    (project / ".longhold" / "settings.json").write_text(json.dumps(settings))
    return project


def test_a_fresh_project_can_forbid_but_not_allow(home, project):
    loaded = load_permissions(project, at=home)
    assert [str(rule) for rule in loaded.rules.deny] == ["Read(.env)"]
    assert (loaded.rules.allow, loaded.mode) == ((), "ask")
    assert len(loaded.untrusted) == 1


def test_trust_lets_a_project_allow(home, project):
    (section,) = load_permissions(project, at=home).untrusted
    trust(section, at=home)
    loaded = load_permissions(project, at=home)
    assert [str(rule) for rule in loaded.rules.allow] == ["Bash(npm:*)"]
    assert (loaded.mode, loaded.untrusted) == ("bypass", ())


def test_a_changed_section_must_be_trusted_anew(home, project):
    trust(load_permissions(project, at=home).untrusted[0], at=home)
    file = project / ".longhold" / "settings.json"
    file.write_text(file.read_text().replace("npm", "rm"))
    assert load_permissions(project, at=home).rules.allow == ()


def test_a_changed_script_must_be_trusted_anew(home, project):
    (project / "hook.sh").write_text("echo ok\n")
    value = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh ./hook.sh"}]}]}}
    (project / ".longhold" / "hooks.json").write_text(json.dumps(value))
    trust(read_sections("hooks", project, at=home)[0], at=home)
    assert read_sections("hooks", project, at=home)[0].is_trusted
    (project / "hook.sh").write_text("echo evil\n")
    assert not read_sections("hooks", project, at=home)[0].is_trusted


def test_the_users_own_file_counts_at_once(home):
    home.mkdir()
    (home / "settings.toml").write_text('[permissions]\nallow = ["Bash(make:*)"]\n')
    loaded = load_permissions(None, at=home)
    assert [str(rule) for rule in loaded.rules.allow] == ["Bash(make:*)"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"permissions": 1}', '{"permissions": {"allow": 1}}',
             '{"permissions": {"allow": ["("]}}', '{"permissions": {"defaultMode": "x"}}']
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_an_error(home, text):
    home.mkdir()
    (home / "settings.json").write_text(text)
    with pytest.raises(ConfigError):
        load_permissions(None, at=home)


def test_the_list_of_trust_is_private(home, project):
    trust(load_permissions(project, at=home).untrusted[0], at=home)
    assert (home / "trusted.json").stat().st_mode & 0o777 == 0o600
