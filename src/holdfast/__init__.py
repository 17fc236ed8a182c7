"""Holdfast keeps an LLM agent working past its context window without losing anything."""
