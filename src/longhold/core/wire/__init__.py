"""One codec per provider dialect, for blocks, messages and tools in both directions."""
