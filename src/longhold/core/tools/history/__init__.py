"""Search and reopen anything that left the model's view.

`history` answers a `question` from a growing log, and `tool` offers that to the model. `catalogue`,
`records`, `index` and `pages` serve `history`. Nothing here changes the view.
"""
