"""Search and reopen anything that left the model's view, without changing the view."""
