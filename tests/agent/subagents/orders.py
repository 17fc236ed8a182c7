"""A mailer's way to agents that must not be used."""


async def not_resumed(agent):
    raise AssertionError(f"{agent} was resumed")
