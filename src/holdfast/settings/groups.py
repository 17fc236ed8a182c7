"""All settings, by group: the one value the rest of the program is given."""

from dataclasses import dataclass, field

from holdfast.settings.agents import AgentsSettings
from holdfast.settings.budget import BudgetSettings
from holdfast.settings.cache import CacheSettings
from holdfast.settings.clear import ClearSettings
from holdfast.settings.collapse import CollapseSettings
from holdfast.settings.compact import CompactSettings
from holdfast.settings.dream import DreamSettings
from holdfast.settings.gauge import GaugeSettings
from holdfast.settings.history import HistorySettings
from holdfast.settings.instructions import InstructionsSettings
from holdfast.settings.log import LogSettings
from holdfast.settings.loop import LoopSettings
from holdfast.settings.memory import MemorySettings
from holdfast.settings.model import ModelSettings
from holdfast.settings.notes import NotesSettings
from holdfast.settings.prompt import PromptSettings
from holdfast.settings.spill import SpillSettings
from holdfast.settings.window import WindowSettings


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
