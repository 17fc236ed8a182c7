"""Packages that may be missing, and the command that installs them."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

from longhold.core.settings import installation
from longhold.core.settings.installation import EXTRAS, install_words, load_extra
from longhold.errors import ConfigError

ROOT = Path(__file__).parent.parent.parent.parent


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(
        ConfigError, match=r"needs the package 'openai'; to install it: .*\[openai\]"
    ):
        load_extra("openai", extra="openai")


def test_a_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_a_package.py").write_text("import no_such_package_anywhere")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_anywhere"):
        load_extra("half_a_package", extra="openai")


def test_a_present_package_is_given():
    assert load_extra("json", extra="none").loads("1") == 1


def test_the_table_of_extras_is_that_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = declared["optional-dependencies"]
    assert set(extras) - {"all"} == set(EXTRAS)
    [everything] = extras["all"]
    named = everything.removeprefix("longhold[").removesuffix("]").split(",")
    frameworks = {"langchain", "openai-agents", "pydantic-ai"}
    assert set(named) == set(EXTRAS) - frameworks


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An environment at a path, and what pip wrote about where the package came from."""

    def make(prefix, url, *, editable=False):
        place = tmp_path / prefix
        info = place / "lib" / "longhold-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: longhold\nVersion: 1\n")
        direct = {"url": url, "dir_info": {"editable": editable}}
        (info / "direct_url.json").write_text(json.dumps(direct))
        monkeypatch.syspath_prepend(place / "lib")
        monkeypatch.setattr(sys, "prefix", str(place))
        monkeypatch.setattr(sys, "executable", str(place / "bin/python"))
        return place

    return make


def test_pip_installs_from_where_the_package_came(installed):
    place = installed("venv", "file:///home/me/longhold")
    words = f"{place}/bin/python -m pip install '/home/me/longhold[serve]'"
    assert install_words("serve") == words


def test_a_clone_stays_editable(installed):
    installed("venv", "file:///home/me/my%20clone", editable=True)
    assert install_words("serve").endswith("--editable '/home/me/my clone[serve]'")


def test_an_environment_without_pip_uses_uv(installed, monkeypatch):
    place = installed("venv", "file:///home/me/longhold")
    monkeypatch.setitem(sys.modules, "pip", None)
    expected = f"uv pip install --python {place}/bin/python '/home/me/longhold[mcp]'"
    assert install_words("mcp") == expected


def test_pipx_injects(installed):
    place = installed("pipx/venvs/longhold", "file:///home/me/longhold")
    (place / "pipx_metadata.json").write_text("{}")
    assert install_words("mcp") == "pipx inject --force longhold '/home/me/longhold[mcp]'"


def test_uv_tool_keeps_the_extras_it_has(installed, monkeypatch):
    place = installed("uv/tools/longhold", "file:///home/me/longhold")
    (place / "uv-receipt.toml").write_text("")
    monkeypatch.setattr(installation, "EXTRAS", {"serve": ("json",), "mcp": ("no_such_module",)})
    assert install_words("mcp") == "uv tool install --force '/home/me/longhold[serve,mcp]'"


def test_uvx_names_the_extra_for_the_next_run(installed):
    installed("cache/uv/archive-v0/abc", "file:///home/me/longhold")
    assert install_words("mcp") == "uvx --from '/home/me/longhold[mcp]' longhold …"
