"""The path of a turn: engine, round, loop, and forks."""
