"""The keys of the live screen."""

from typing import Protocol

from prompt_toolkit.filters import Condition, FilterOrBool
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys


class KeyTarget(Protocol):
    """What keys act on."""

    def is_choosing(self) -> bool: ...
    def can_pick_digit(self) -> bool: ...
    def has_suggestion(self) -> bool: ...
    def can_edit_queue(self) -> bool: ...
    def submit(self) -> None: ...
    def move_choice(self, step: int) -> None: ...
    def pick(self, number: int) -> None: ...
    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...
    def end(self) -> None: ...
    def go_back(self) -> None: ...
    def open_last(self) -> None: ...
    def take_suggestion(self) -> None: ...
    def edit_queue(self) -> None: ...
    def paste(self, text: str) -> None: ...


def key_bindings(target: KeyTarget) -> KeyBindings:
    keys = KeyBindings()
    choosing = Condition(target.is_choosing)

    def bind(*names: str, do: str, when: FilterOrBool = True, eager: FilterOrBool = False) -> None:
        act = getattr(target, do)
        keys.add(*names, filter=when, eager=eager)(lambda _event: act())

    bind("enter", do="submit")
    bind("c-c", do="cancel")
    bind("<sigint>", do="cancel")
    bind("escape", do="interrupt", eager=choosing)
    bind("escape", "escape", do="go_back", when=~choosing)
    bind("c-d", do="end")
    bind("c-o", do="open_last")
    bind("tab", do="take_suggestion", when=Condition(target.has_suggestion))
    bind("up", do="edit_queue", when=Condition(target.can_edit_queue))
    _bind_editing(keys, target, choosing)
    return keys


def _bind_editing(keys: KeyBindings, target: KeyTarget, choosing: Condition) -> None:
    @keys.add("escape", "enter", filter=~choosing)
    @keys.add("c-j", filter=~choosing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        target.paste(event.data)

    @keys.add("up", filter=choosing)
    @keys.add("c-p", filter=choosing)
    def _(event: KeyPressEvent) -> None:
        target.move_choice(-1)

    @keys.add("down", filter=choosing)
    @keys.add("c-n", filter=choosing)
    def _(event: KeyPressEvent) -> None:
        target.move_choice(1)

    for digit in "123456789":

        @keys.add(digit, filter=Condition(target.can_pick_digit))
        def _(event: KeyPressEvent) -> None:
            target.pick(int(event.data) - 1)
