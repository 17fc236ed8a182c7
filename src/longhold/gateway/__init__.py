"""A gateway: clients that know nothing of Longhold, in front of any provider.

What a client sends is what happened, what goes upstream is the view: each conversation is a
session whose list of messages is followed, and of a request only what the session decided to
change is changed. Everything else passes byte for byte. `running` serves from a thread, `serve`
until interrupted.
"""
