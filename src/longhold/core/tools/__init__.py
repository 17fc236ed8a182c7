"""The tool protocol and the state that tools share.

`context` holds a session's tool state. `describe` knows other agents' tools by name. This file
imports nothing, so that one module can be loaded alone.
"""
