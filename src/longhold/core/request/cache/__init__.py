"""The provider's prompt cache: what is in it, why it broke, what a change of history would cost."""
