"""One plug-in of each kind for Longhold, except a store."""
