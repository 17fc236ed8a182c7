"""Looks up whatever left the model's view: by number, tool use, file or words.

`history` answers questions about a growing log; `catalogue` knows calls, results and files,
`records` the text of each entry, `index` finds words, `pages` cuts text to size, and `tool` is
all of this for the model. Nothing here changes the view.
"""
