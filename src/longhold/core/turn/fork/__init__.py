"""Forks: questions on a conversation's exact prefix, answered outside of its view."""
