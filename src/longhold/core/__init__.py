"""What every product shares: messages, models, the log, the view, requests, stages and turns."""
