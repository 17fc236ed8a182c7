"""Other libraries, each driven through its public API in an environment of its own."""
