"""Pure functions for the costs and savings of removing content from the context."""
