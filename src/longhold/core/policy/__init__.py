"""What making space costs and saves, as pure functions over the view and the prices."""
