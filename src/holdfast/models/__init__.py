"""The only place that talks to providers. One protocol; who answers is a setting."""
