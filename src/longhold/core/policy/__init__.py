"""Costs and savings of removing content from the context. Pure functions."""
