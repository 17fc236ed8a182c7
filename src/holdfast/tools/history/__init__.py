"""Whatever left the model's view, found again: by number, by tool use, by file, by words.

`history` answers questions about a growing list of entries; `catalogue` knows who is who in
it, `records` what each entry says, `shelf` reads the bodies that lie on disk, `index` finds
words, `pages` cuts what is found to size. `tool` is all of this for the model. Nothing here
changes the view: what is found is shown again as data.
"""
