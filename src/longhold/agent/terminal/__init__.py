"""The terminal chat, which the library does not import.

`LiveScreen` needs the extra `terminal`. `PlainScreen` works line by line, for pipes, dumb terminals
and screen readers.
"""
