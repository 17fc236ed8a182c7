"""Looks up whatever left the model's view: by number, tool use, file, kind or words.

`history` answers questions about a growing log; `question` reads them, `catalogue` knows calls,
results, files and steps, `records` and `calls` the text of each entry, `index` where words stand,
`ranking` which of those places answer best, `pages` cuts text to size, and `tool` is all of this
for the model. Nothing here changes the view.
"""
