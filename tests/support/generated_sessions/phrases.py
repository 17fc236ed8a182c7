"""What the user types and the model says, thinks and summarises, about the invented project.

Sentences are drawn from the corpus and filled with the project's own names. Users ask, set
rules, correct and cancel; long messages carry a paste.
"""

from generated_sessions.corpus import fill, prose
from generated_sessions.project import Project
from generated_sessions.shell import log_lines

SECTIONS = (
    "What the user wants",
    "Rules the user set",
    "Files read and changed",
    "Errors met and how they were solved",
    "Tried and dropped",
    "Open work",
    "Where the work stands",
)


def first_message(project: Project) -> str:
    lines = prose().user
    return "\n\n".join(
        fill(project.chance.pick(kind), project.words()) for kind in (lines.asks, lines.rules)
    )


def user_message(project: Project, size: float) -> str:
    """Return the user's next message; the larger the size, the likelier a paste."""
    chance, lines = project.chance, prose().user
    kinds = (lines.asks, lines.short, lines.rules, lines.corrections, lines.cancels)
    kind = chance.choices(kinds, (46, 24, 12, 10, 8))[0]
    message = fill(chance.pick(kind), project.words())
    if kind is lines.asks and chance.odds(0.25):
        message += "\n\n" + fill(chance.pick(lines.rules), project.words())
    if kind is not lines.short and chance.odds(0.3 * size):
        paste = log_lines(project, chance.length(6 * size, 0.7, 60))
        message += f"\n\n{chance.pick(lines.pastes)}\n```\n{paste}\n```"
    return message


def thinking(project: Project, size: float) -> str:
    chance, thoughts = project.chance, prose().model.thoughts
    count = chance.length(3.8 * size, 0.8, 60)
    start = chance.between(0, len(thoughts) - 1)
    said = (
        fill(thoughts[(start + 5 * number) % len(thoughts)], project.words())
        for number in range(count)
    )
    return "".join(thought + ("\n\n" if chance.odds(0.25) else " ") for thought in said).strip()


def instructions(project: Project) -> str:
    lines = prose().model
    steps = [f"{n}. {fill(project.chance.pick(lines.tasks), project.words())}" for n in range(1, 9)]
    return "# Review\n\nGo through these in order and report once.\n\n" + "\n".join(steps)


def opener(project: Project) -> str:
    return fill(project.chance.pick(prose().model.openers), project.words())


def answer(project: Project, size: float) -> str:
    chance, lines = project.chance, prose().model
    closing = fill(chance.pick(lines.closings), project.words())
    points = [
        f"- {fill(chance.pick(lines.points), project.words())}"
        for _ in range(chance.length(7 * size, 0.8, 60))
    ]
    return closing if len(points) < 2 else f"{closing}\n\n" + "\n".join(points)


def report(project: Project, size: float) -> str:
    sections = project.chance.length(3 * size, 0.5, 14)
    return "\n\n".join(
        f"### {project.any_path()}\n\n{answer(project, 1.0)}" for _ in range(sections)
    )


def summary(project: Project) -> str:
    chance, lines = project.chance, prose().model
    parts = ["The earlier part of this session did not fit any more. Its summary:"]
    for number, title in enumerate(SECTIONS, start=1):
        points = [
            f"   - {fill(chance.pick(lines.summary), project.words())}"
            for _ in range(chance.between(4, 18))
        ]
        parts.append(f"{number}. {title}:\n" + "\n".join(points))
    return "\n\n".join(parts) + "\n\nGo on with the last task without asking again."


def title(project: Project) -> str:
    return fill("@name@ of @adjective@ @entity@ @noun@", project.words()).capitalize()
