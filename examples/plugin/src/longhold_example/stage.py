"""A stage: it tells the model the date, in a hidden message, whenever the date has changed."""

from datetime import date

from longhold.core.turn.engine import Engine


class TellDate:
    """Made once for each session. A stage looks at the engine's view and records entries."""

    def __init__(self) -> None:
        self._told: date | None = None

    async def __call__(self, engine: Engine) -> None:
        today = date.today()
        if today != self._told:
            self._told = today
            engine.say(f"<reminder>Today is {today:%A, %d %B %Y}.</reminder>", hidden=True)
