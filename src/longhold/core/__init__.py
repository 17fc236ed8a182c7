"""Code shared by all products: messages, models, log, view, requests, stages and turns."""
