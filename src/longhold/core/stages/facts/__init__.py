"""What a log says of a session without a model: turns, steps, files, commands, errors, todos.

`extract` reads items into `facts`; `calls` and `user_text` know how other agents write tool calls
and messages; `outcome`, `gist` and `names` pick what matters out of long texts. The digest and the
notes are both written from these facts.
"""
