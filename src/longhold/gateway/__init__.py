"""An HTTP gateway that manages the context of clients that do not know Longhold.

A session follows each client's list of messages. The gateway changes only what the session decided
to change. The rest of a request passes byte for byte.
"""
