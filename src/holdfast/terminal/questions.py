"""Questions about tool calls: what will happen, and what the answer means."""

from holdfast.terminal.text import plain
from holdfast.tools.permissions import Answer, Question


def prompt_for(question: Question) -> str:
    always = f", a = always ({plain(str(question.suggestion))})" if question.suggestion else ""
    return f"Allow? y = yes{always}, n or a reason = no: "


def answer_from(text: str, question: Question) -> Answer:
    """Read what was typed; anything that is not a clear yes is a no, with those words as its reason."""
    text = text.strip()
    match text.lower():
        case "y" | "yes":
            return Answer(choice="once")
        case "a" | "always" if question.suggestion:
            return Answer(choice="always")
        case "n" | "no" | "":
            return Answer(choice="no")
        case _:
            return Answer(choice="no", reason=f"the user said: {text}")
