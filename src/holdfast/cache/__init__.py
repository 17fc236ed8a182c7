"""Keeping the provider's prompt cache warm: how a view becomes a request, byte for byte."""
