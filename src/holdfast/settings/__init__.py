"""Every number Holdfast acts on, with its default and its reason, in one place.

Sources, later ones win: the defaults here, `settings.toml` in the home directory, the
project's `.holdfast/settings.toml`, the environment (`HOLDFAST_GROUP_KEY`). A name or a
value that is not allowed is an error that says where it stands and what is allowed.
Budgets in tokens are for a 200K window and shrink with smaller ones; see `window`.
"""

from holdfast.settings.agents import AgentsSettings
from holdfast.settings.budget import BudgetSettings
from holdfast.settings.cache import CacheSettings
from holdfast.settings.clear import ClearSettings
from holdfast.settings.collapse import CollapseSettings
from holdfast.settings.compact import CompactSettings
from holdfast.settings.dream import DreamSettings
from holdfast.settings.gauge import GaugeSettings
from holdfast.settings.groups import Settings
from holdfast.settings.history import HistorySettings
from holdfast.settings.instructions import InstructionsSettings
from holdfast.settings.log import LogSettings
from holdfast.settings.loop import LoopSettings
from holdfast.settings.memory import MemorySettings
from holdfast.settings.model import ModelSettings
from holdfast.settings.notes import NotesSettings
from holdfast.settings.prompt import PromptSettings
from holdfast.settings.reading import Shown, Value, home, load_settings, show_settings
from holdfast.settings.spill import SpillSettings
from holdfast.settings.window import WindowSettings

__all__ = [
    "AgentsSettings",
    "BudgetSettings",
    "CacheSettings",
    "ClearSettings",
    "CollapseSettings",
    "CompactSettings",
    "DreamSettings",
    "GaugeSettings",
    "HistorySettings",
    "InstructionsSettings",
    "LogSettings",
    "LoopSettings",
    "MemorySettings",
    "ModelSettings",
    "NotesSettings",
    "PromptSettings",
    "Settings",
    "Shown",
    "SpillSettings",
    "Value",
    "WindowSettings",
    "home",
    "load_settings",
    "show_settings",
]
