"""The steps between a message and its request: each looks at the view and answers with entries.

A stage is an async callable that takes the engine; its decision is a pure `plan_…`, its effect
an entry. Which stages run, and in which order, is put together when a session is opened.
"""
