"""How a view becomes a request, byte for byte, so that the provider's prompt cache stays warm."""
