"""The stages that run between a message and its model request.

A stage is an async callable that takes the engine. A pure `plan_…` function makes its decision from
the view, and a log entry carries it out. The session chooses the stages and their order when it
opens.
"""
