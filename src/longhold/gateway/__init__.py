"""An HTTP gateway that manages the context of clients without changing the clients.

For each conversation, a session follows the client's list of messages. The gateway applies the
session's changes to a request and forwards all other bytes unchanged.
"""
