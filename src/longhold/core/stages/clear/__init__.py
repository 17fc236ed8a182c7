"""Layer 2: old results leave the view when that is free, or when it pays."""
