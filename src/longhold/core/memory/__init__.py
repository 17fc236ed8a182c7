"""Long-term memory: a versioned store of Markdown files, recall, and dreams that can be undone."""
