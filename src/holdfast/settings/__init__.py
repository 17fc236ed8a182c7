"""Every number Holdfast acts on, with its default and its reason, in one place.

Sources, later ones win: the defaults, `settings.toml` in the home directory, the project's
`.holdfast/settings.toml`, the environment (`HOLDFAST_GROUP_KEY`). An unknown name or a value
that is not allowed raises `ConfigError`, which says where it stands and what is allowed.
Budgets in tokens are for a 200K window and shrink with smaller ones; see `view.window`.
"""

from holdfast.settings.agent import (
    AgentsSettings,
    InstructionsSettings,
    LoopSettings,
    Mode,
    PromptSettings,
    ShellSettings,
)
from holdfast.settings.cost import CostSettings
from holdfast.settings.gateway import GatewaySettings
from holdfast.settings.memory import (
    DreamSettings,
    HistorySettings,
    LogSettings,
    MemorySettings,
    PageSettings,
)
from holdfast.settings.model import (
    BudgetSettings,
    CacheSettings,
    GaugeSettings,
    ModelSettings,
    WindowSettings,
)
from holdfast.settings.reading import Settings, home, load_settings, show_settings
from holdfast.settings.stages import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    NotesSettings,
    SpillSettings,
)
from holdfast.settings.store import StoreSettings
from holdfast.settings.telemetry import TelemetrySettings
from holdfast.settings.terminal import TerminalSettings

__all__ = [
    "AgentsSettings",
    "BudgetSettings",
    "CacheSettings",
    "ClearSettings",
    "CollapseSettings",
    "CompactSettings",
    "CostSettings",
    "DreamSettings",
    "GatewaySettings",
    "GaugeSettings",
    "HistorySettings",
    "InstructionsSettings",
    "LogSettings",
    "LoopSettings",
    "MemorySettings",
    "Mode",
    "ModelSettings",
    "NotesSettings",
    "PageSettings",
    "PromptSettings",
    "Settings",
    "ShellSettings",
    "SpillSettings",
    "StoreSettings",
    "TelemetrySettings",
    "TerminalSettings",
    "WindowSettings",
    "home",
    "load_settings",
    "show_settings",
]
