"""The terminal agent: a screen, what stands on it, and the conversation that is held there.

Nothing here is imported by the library. `LiveScreen` needs the extra `terminal`; `PlainScreen` does
the same job line by line, for pipes, dumb terminals and screen readers.
"""
