"""Reads the messages and requests of provider APIs into log entries."""
