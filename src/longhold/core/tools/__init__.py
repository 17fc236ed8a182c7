"""The tool protocol and the state that tools share.

This file imports nothing, so that one module can be loaded alone.
"""
