"""Layer 1: results over their budget go to disk, and a preview stays."""
