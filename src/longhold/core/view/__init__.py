"""What the model sees: a fold over the log, and how large it is."""

from longhold.core.view.view import View, fold, fold_stepwise

__all__ = ["View", "fold", "fold_stepwise"]
