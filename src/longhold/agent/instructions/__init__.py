"""Instruction files written by the user and the project, sent as hidden messages."""
