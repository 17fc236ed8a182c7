"""What a session recorded, and what its model sees."""

from longhold.core.messages import message_to_wire, text_of


def of(session, kind):
    """List the entries of a kind in a session's log."""
    return [entry for entry in session.view.history if isinstance(entry, kind)]


def texts(session):
    return [text_of(message.content) for message in session.view.messages()]


def shown(session):
    """What the model sees, in the words of the Messages API."""
    return [message_to_wire(message) for message in session.view.messages()]
