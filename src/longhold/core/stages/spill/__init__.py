"""Layer 1: move results over their size limit to disk and show a preview."""
