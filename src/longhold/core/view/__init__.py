"""The view that the model sees, folded from the log, and its size."""

from longhold.core.view.view import View, fold, fold_stepwise

__all__ = ["View", "fold", "fold_stepwise"]
