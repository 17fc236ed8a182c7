"""Pages about sessions, as a self-contained HTML file or served live on loopback."""
