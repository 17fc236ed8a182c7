"""The provider's prompt cache: its content, its breaks and the causes of the breaks."""
