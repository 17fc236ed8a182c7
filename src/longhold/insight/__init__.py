"""What a session tells about itself: what fills its window, what happened, what it cost."""
