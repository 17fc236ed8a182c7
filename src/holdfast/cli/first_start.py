"""The first start without a key: what there is to choose from, asked once and remembered."""

from dataclasses import replace

from holdfast.cli.agent_options import AgentOptions
from holdfast.errors import AuthenticationFailed
from holdfast.models.capabilities import known_models
from holdfast.models.weights import CATALOG, installed_path
from holdfast.settings import home, load_settings
from holdfast.settings.keys import ANTHROPIC, OPENAI, save_key
from holdfast.settings.writing import set_value
from holdfast.terminal.screen import Screen
from holdfast.terminal.text import size

_GOOD_FOR = {
    "smollm2": "small talk and one-line edits",
    "qwen-coder": "small edits and questions about code",
}
KEY_CLAUDE, KEY_OPENAI, SERVER, OFFLINE = (
    "A key for Claude",
    "A key for OpenAI",
    "A server of your own that speaks OpenAI's API (llama.cpp, vLLM, Ollama)",
    "Look around offline: a fixed plan, no model, nothing is sent",
)


async def choose_model(
    screen: Screen, chosen: AgentOptions, error: AuthenticationFailed
) -> AgentOptions:
    """Ask who shall answer; raise the error again if the user does not want to say."""
    if load_settings().model.offline:
        screen.say("`holdfast config set model.offline false` lets you choose again.", "dim")
        return replace(chosen, offline=True, model="", base_url="")
    screen.say("There is no key for the model yet. Your choice is remembered.", "notice")
    local = {f"A local model: {name}, {_described(name)}": name for name in CATALOG}
    rows = [KEY_CLAUDE, KEY_OPENAI, SERVER, *local, OFFLINE]
    picked = await screen.choose("Who answers?", rows)
    row = rows[picked] if picked is not None else ""
    if row in (KEY_CLAUDE, KEY_OPENAI):
        return await _with_key(screen, chosen, is_claude=row == KEY_CLAUDE, error=error)
    if row == SERVER:
        return await _with_server(screen, chosen)
    if row in local:
        return await _with_local(screen, chosen, local[row])
    if row == OFFLINE:
        set_value(home() / "settings.toml", "model.offline", "true")
        return replace(chosen, offline=True, model="", base_url="")
    raise error


def _described(name: str) -> str:
    where = "installed" if installed_path(name) else f"{size(CATALOG[name].size_bytes)} to download"
    return f"{where}, good for {_GOOD_FOR[name]}"


async def _with_key(
    screen: Screen, chosen: AgentOptions, *, is_claude: bool, error: AuthenticationFailed
) -> AgentOptions:
    key = (await screen.secret("Key (it is not shown): ")).strip()
    if not key:
        raise error
    save_key(ANTHROPIC if is_claude else OPENAI, key)
    screen.say(f"Saved in {home() / 'keys.json'}, readable by you alone.", "dim")
    if is_claude:
        return chosen
    return _remembered(chosen, next(name for name in known_models() if name.startswith("gpt-")))


async def _with_server(screen: Screen, chosen: AgentOptions) -> AgentOptions:
    address = (await screen.answer("Address, such as http://127.0.0.1:8080/v1: ")).strip()
    name = (await screen.answer("Name of the model there: ")).strip()
    set_value(home() / "settings.toml", "model.base_url", address)
    return _remembered(chosen, name)


async def _with_local(screen: Screen, chosen: AgentOptions, name: str) -> AgentOptions:
    from holdfast.cli import cli

    if installed_path(name) is None:
        words = ["model", "install", name]
        await screen.hand_over(lambda: cli.main(words, standalone_mode=False))
    return _remembered(chosen, f"local/{name}")


def _remembered(chosen: AgentOptions, name: str) -> AgentOptions:
    set_value(home() / "settings.toml", "model.name", name)
    return replace(chosen, model="", base_url="")
