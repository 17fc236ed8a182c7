"""All settings, each with its default and description.

Later sources win: defaults, `settings.toml` in the home directory, `.longhold/settings.toml` in the
project, environment variables (`LONGHOLD_GROUP_KEY`). Unknown names and invalid values raise
`ConfigError`. Token budgets assume a 200K window and shrink with it; see `view.window`.
"""
# mypy: implicit-reexport
# ruff: noqa: F401

from longhold.core.settings.groups import (
    AgentsSettings,
    BudgetSettings,
    CacheSettings,
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    CostSettings,
    DreamSettings,
    GatewaySettings,
    GaugeSettings,
    InstructionsSettings,
    LogSettings,
    LoopSettings,
    MemorySettings,
    Mode,
    ModelSettings,
    NotesSettings,
    PageSettings,
    PluginsSettings,
    PromptSettings,
    ShellSettings,
    SpillSettings,
    StoreSettings,
    TelemetrySettings,
    TerminalSettings,
    WindowSettings,
)
from longhold.core.settings.reading import Settings, home, load_settings, show_settings
