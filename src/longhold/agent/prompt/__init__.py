"""The system prompt: its sections, and the environment they describe."""
