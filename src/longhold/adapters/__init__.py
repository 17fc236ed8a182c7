"""Adapters for other frameworks. Each follows the framework's list of messages.

A module imports its framework, so nothing is imported here.
"""
