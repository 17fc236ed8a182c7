"""Layer 4: replace history with a summary, a digest or notes, and keep what must survive."""
