"""All settings, by group: the one value the rest of the program is given."""

from dataclasses import dataclass, field

from holdfast.settings.agent import (
    AgentsSettings,
    InstructionsSettings,
    LoopSettings,
    PromptSettings,
)
from holdfast.settings.log import HistorySettings, LogSettings
from holdfast.settings.memory import DreamSettings, MemorySettings
from holdfast.settings.model import (
    BudgetSettings,
    CacheSettings,
    GaugeSettings,
    ModelSettings,
    WindowSettings,
)
from holdfast.settings.stages import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    NotesSettings,
    SpillSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, by group."""

    model: ModelSettings = field(default_factory=ModelSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    gauge: GaugeSettings = field(default_factory=GaugeSettings)
    log: LogSettings = field(default_factory=LogSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    instructions: InstructionsSettings = field(default_factory=InstructionsSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    spill: SpillSettings = field(default_factory=SpillSettings)
    clear: ClearSettings = field(default_factory=ClearSettings)
    collapse: CollapseSettings = field(default_factory=CollapseSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    compact: CompactSettings = field(default_factory=CompactSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    dream: DreamSettings = field(default_factory=DreamSettings)
    agents: AgentsSettings = field(default_factory=AgentsSettings)
