"""The system prompt: its sections, and what they say of the place a session runs in."""
