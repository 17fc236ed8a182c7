"""Layer 3: notes on one page of sections, written by the engine, a model and people.

`notes` decides when to update the page, `update` writes it, `page` parses it, and `account`
extracts facts from the log.
"""
