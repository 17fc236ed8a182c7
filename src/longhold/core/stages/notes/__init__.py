"""Layer 3: a page of notes that Longhold, a model and the user write."""
