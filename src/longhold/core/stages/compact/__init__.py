"""Layer 4: replace history with a summary, a digest or notes, and restore needed content."""
