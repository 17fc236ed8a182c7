"""Search and reopen content that left the model's view, without changing the view."""
