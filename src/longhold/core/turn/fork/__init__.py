"""Forks: questions on a conversation's exact prefix, whose answers stay outside its view."""
