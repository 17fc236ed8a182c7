"""The provider's prompt cache: its content, its breaks and their causes."""
