"""Insight into sessions: what fills the window, what happened, what it cost."""
