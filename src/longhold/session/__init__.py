"""A session: what a program holds that has a loop of its own."""

from longhold.session.session import Session

__all__ = ["Session"]
