"""The path of a turn: engine, round, loop, and the forks beside them."""
