"""Pages about sessions: a self-contained HTML file, or the same served live on loopback."""
