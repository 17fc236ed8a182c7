"""A model of how providers cache and bill prompts, by their published rules."""
