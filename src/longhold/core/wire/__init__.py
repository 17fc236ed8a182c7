"""One codec per provider dialect: blocks, messages and tools in its shapes, and back."""
