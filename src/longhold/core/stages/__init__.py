"""The stages that run between a message and its model request.

A stage is an async callable that takes the engine. A pure `plan_…` function makes a decision from
the view, and a log entry records it.
"""
