"""What the parts of a generated session share: the project, the tools, the meter, the writer.

All text passes through here, so that its record, its tokens in the next prompt and its share of
the session are counted together.
"""

from dataclasses import dataclass
from typing import Self

import msgspec

from generated_sessions.balance import Balance
from generated_sessions.calls import GeneratedCall, GeneratedTools, Json
from generated_sessions.chance import Chance
from generated_sessions.corpus import pictures
from generated_sessions.meter import Meter, weigh_picture
from generated_sessions.project import Project
from generated_sessions.writer import SessionWriter, picture_block


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    chance: Chance
    project: Project
    tools: GeneratedTools
    meter: Meter
    balance: Balance
    writer: SessionWriter
    is_sidechain: bool
    scale: float

    @classmethod
    def build(cls, seed: int, *, model: str, is_sidechain: bool, scale: float) -> Self:
        chance = Chance(seed)
        project = Project(chance, scale=scale)
        return cls(
            chance=chance,
            project=project,
            tools=GeneratedTools(project),
            meter=Meter(chance),
            balance=Balance(),
            writer=SessionWriter(chance, model=model, is_sidechain=is_sidechain),
            is_sidechain=is_sidechain,
            scale=scale,
        )

    def say(self, text: str) -> None:
        self.writer.user(text)
        self.weigh_in(text)

    def say_meta(self, content: str | list[Json], text: str) -> None:
        self.writer.user(content, isMeta=True)
        self.weigh_in(text)

    def show_picture(self, text: str) -> None:
        picture = self.chance.pick(pictures())
        self.writer.user([{"type": "text", "text": text}, picture_block(picture)])
        self.weigh_in(text)
        self.meter.add(weigh_picture(picture.width, picture.height))

    def weigh_in(self, text: str) -> None:
        self.meter.add(self.meter.weigh(text))
        self.balance.count("user", len(text))

    def weigh_answer(self, blocks: list[Json]) -> int:
        texts = [_text_of(block) for block in blocks]
        tokens = sum(self.meter.weigh(text) for text in texts)
        self.meter.add(tokens)
        self.balance.count("assistant", sum(map(len, texts)))
        return tokens

    def weigh_result(self, call: GeneratedCall, tool_id: str) -> None:
        picture = call.picture
        tokens = (
            weigh_picture(picture.width, picture.height)
            if picture
            else self.meter.weigh(call.output)
        )
        self.meter.add_result(tool_id, tokens)
        self.balance.count("result", len(call.output))


def _text_of(block: Json) -> str:
    match block:
        case {"type": "thinking", "thinking": str(text)} | {"type": "text", "text": str(text)}:
            return text
        case {"name": str(name), "input": given}:
            return name + msgspec.json.encode(given).decode()
        case _:
            raise ValueError(f"a block of unknown kind: {block!r}")
