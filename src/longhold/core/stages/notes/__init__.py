"""Notes kept while a session runs: one page of sections, by the engine, a model and people.

`notes` decides when it is updated, `update` does it, `page` reads and writes it, and `account` is
what the log says.
"""
