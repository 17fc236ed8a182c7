"""How history becomes a summary, a digest or notes, and what survives it."""
