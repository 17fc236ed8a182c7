"""The conversation from which facts are read."""

from tests.core.stages.facts.conftest import talk

__all__ = ["talk"]
