"""A release: one version, its changelog section, and complete metadata."""

import re
import tomllib
from pathlib import Path

import longhold

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## (.+)$", CHANGELOG, re.M)
    assert versions[0].split()[0] in (PROJECT["version"], "Unreleased")
    assert any(version.startswith(PROJECT["version"]) for version in versions)
    assert set(re.findall(r"^### (.+)$", CHANGELOG, re.M)) <= KINDS


def test_the_version_has_one_place():
    places = [
        path
        for path in [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", ROOT / "Makefile"]
        if re.search(
            rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])", path.read_text("utf-8")
        )
    ]
    assert places == []
    assert re.fullmatch(r"\d+\.\d+\.\d+", longhold.__version__)


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80


def test_the_supported_versions_of_python_are_declared_and_tested():
    declared = [
        name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: Python :: 3." in name
    ]
    assert PROJECT["requires-python"] == f">={declared[0]}"
    workflow = (ROOT / ".github/workflows/tests.yml").read_text("utf-8")
    assert all(f'"{version}"' in workflow for version in declared)
