"""Layer 2: clear old tool results when that costs nothing or saves money."""
