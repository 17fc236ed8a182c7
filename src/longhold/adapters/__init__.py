"""Longhold inside other frameworks: each module makes one framework's list of messages followed.

A module imports its framework, so none is imported here.
"""
