"""Other libraries, each driven through its public API in its own environment."""
