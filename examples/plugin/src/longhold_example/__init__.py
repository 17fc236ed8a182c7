"""A model, a tool and a transcript format for Longhold."""
