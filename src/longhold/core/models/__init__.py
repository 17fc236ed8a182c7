"""Model clients: the only package that talks to providers. `open_model(name)` returns a `Model`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.core.models.registry import open_model as open_model

if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a name on first use, because reading a log needs no SDK."""
        if name != "open_model":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from longhold.core.models.registry import open_model

        return open_model
