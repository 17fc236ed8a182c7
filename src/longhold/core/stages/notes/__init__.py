"""Layer 3: a page of notes, written by the engine, a model and the user."""
