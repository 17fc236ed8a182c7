"""Tests of packages that may be missing."""

import pytest

from longhold.core.models.connection import load_extra
from longhold.errors import ConfigError


def test_a_missing_package_names_its_extra():
    with pytest.raises(ConfigError, match=r"pip install 'longhold\[local\]'"):
        load_extra("no_such_package_anywhere", extra="local")


def test_a_broken_package_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_a_package.py").write_text("import no_such_package_anywhere")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_anywhere"):
        load_extra("half_a_package", extra="local")


def test_a_present_package_is_given():
    assert load_extra("json", extra="none").loads("1") == 1
