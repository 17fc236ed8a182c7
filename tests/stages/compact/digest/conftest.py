"""The conversation that facts are read from."""

from tests.stages.facts.conftest import talk

__all__ = ["talk"]
