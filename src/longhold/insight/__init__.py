"""Reports about sessions: the content of the window, the history, and the cost."""
