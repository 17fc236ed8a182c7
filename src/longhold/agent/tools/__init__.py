"""The tools of the coding agent: files, search, shell, web, plans and todos."""
