"""The terminal chat: screens, their contents, and the conversation.

The library does not import it. `LiveScreen` needs the extra `terminal`. `PlainScreen` works line by
line, for pipes, dumb terminals and screen readers.
"""
