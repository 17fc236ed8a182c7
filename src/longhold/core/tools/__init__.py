"""The built-in tools: one module per tool, all of the shape in `protocol`.

`standard` lists them; `context` is what they share in a session; `describe` knows other
agents' tools by name. This file imports nothing, so that one module can be loaded alone.
"""
