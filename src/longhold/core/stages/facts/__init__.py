"""Facts about a session, extracted from its log without a model.

`extract` turns items into `facts`. `calls` and `user_text` know the formats of other agents.
`outcome`, `gist` and `names` select the important parts of long texts. The digest and the notes are
both written from these facts.
"""
