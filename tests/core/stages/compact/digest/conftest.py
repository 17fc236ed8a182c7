"""The conversation that facts are read from."""

from tests.core.stages.facts.conftest import talk

__all__ = ["talk"]
