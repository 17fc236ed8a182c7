"""Layer 3: notes on one page of sections, written by the engine, a model and people."""
