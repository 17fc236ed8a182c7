"""Every number Longhold acts on, with its default and its reason, in one place.

Sources, later ones win: the defaults, `settings.toml` in the home directory, the project's
`.longhold/settings.toml`, the environment (`LONGHOLD_GROUP_KEY`). An unknown name or a value
that is not allowed raises `ConfigError`, which says where it stands and what is allowed.
Budgets in tokens are for a 200K window and shrink with smaller ones; see `view.window`.
"""

from longhold.core.settings.agent import (
    AgentsSettings,
    BudgetSettings,
    CacheSettings,
    CostSettings,
    GatewaySettings,
    GaugeSettings,
    InstructionsSettings,
    LoopSettings,
    Mode,
    ModelSettings,
    PromptSettings,
    ShellSettings,
    StoreSettings,
    TelemetrySettings,
    TerminalSettings,
    WindowSettings,
)
from longhold.core.settings.history import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    DreamSettings,
    HistorySettings,
    LogSettings,
    MemorySettings,
    NotesSettings,
    PageSettings,
    SpillSettings,
)
from longhold.core.settings.reading import Settings, home, load_settings, show_settings

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
