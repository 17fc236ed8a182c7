"""Spans of finished work shown as one line each, reversibly."""
