"""Packages that only some models need, imported when the first such model is opened.

A name comes in, a module goes out, or an error that says which extra to install. Nothing
here is imported by `import holdfast`, so a provider's SDK costs only those who use it.
"""

from importlib import import_module
from types import ModuleType

from holdfast.errors import ConfigError


def load(module: str, *, extra: str) -> ModuleType:
    """Import an optional package or say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ConfigError(
            f"this model needs the package {module!r}; pip install 'holdfast[{extra}]'"
        ) from error
