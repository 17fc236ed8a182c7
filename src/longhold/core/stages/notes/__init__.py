"""Notes kept while a session runs: one page of sections, by the engine, a model and people.

`page` reads and writes it, `account` and `engine_lines` are what the log says, `asking` is the prompt
for a model.
"""
