"""The tool protocol and the state that tools share.

This file imports nothing, so that each module can be loaded alone.
"""
