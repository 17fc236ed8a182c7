"""Memory that lasts: a versioned store of Markdown files, recall that fits, dreams that can be undone."""
