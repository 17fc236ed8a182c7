"""Every number Longhold acts on, with its default and its reason, in one place.

Sources, later ones win: the defaults, `settings.toml` in the home directory, the project's
`.longhold/settings.toml`, the environment (`LONGHOLD_GROUP_KEY`). An unknown name or a value
that is not allowed raises `ConfigError`, which says where it stands and what is allowed.
Budgets in tokens are for a 200K window and shrink with smaller ones; see `view.window`.
"""

from longhold.core.settings.agent import (
    AgentsSettings,
    GatewaySettings,
    InstructionsSettings,
    LoopSettings,
    Mode,
    PromptSettings,
    ShellSettings,
    TerminalSettings,
)
from longhold.core.settings.memory import (
    DreamSettings,
    HistorySettings,
    LogSettings,
    MemorySettings,
    PageSettings,
)
from longhold.core.settings.model import (
    BudgetSettings,
    CacheSettings,
    CostSettings,
    GaugeSettings,
    ModelSettings,
    StoreSettings,
    TelemetrySettings,
    WindowSettings,
)
from longhold.core.settings.reading import Settings, home, load_settings, show_settings
from longhold.core.settings.stages import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    NotesSettings,
    SpillSettings,
)

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
