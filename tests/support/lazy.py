"""Packages that a test file needs: checked at collection, imported at run time.

Every worker collects every file, and some of these packages take seconds to import.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def needs(*packages: str) -> None:
    """Skip the test file that calls this unless all of these are installed."""
    for name in packages:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)


class LazyModule:
    """A module that is imported when its first attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
