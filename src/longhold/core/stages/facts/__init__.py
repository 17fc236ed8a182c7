"""Facts about a session, extracted from its log without a model.

The digest and the notes are written from these facts. `tool_steps` and `user_text` know the formats
of other agents. `outcome`, `gist` and `names` select the important parts of long texts.
"""
