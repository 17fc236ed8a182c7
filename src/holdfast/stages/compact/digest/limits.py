"""How long each thing may be told: the budgets of a digest, each with its reason.

Characters bound one text, tokens bound the whole. They are for a segment of a 200K window;
a caller with a smaller one gives smaller limits. Nothing is lost by any of them: what is cut
here is still in the log, under the message number that stands beside it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLimits:
    tokens_ratio: float = 0.11
    """Of the segment's tokens; with the index of names beside it that stays under 12 %."""
    least_tokens: int = 1_200
    """A short segment gets this much: below it the nine sections hold nothing but headings."""
    most_tokens: int = 16_000
    """A long one no more: past it a reader skims, and each later call pays for it again."""
    words_tokens: int = 8_000
    """The user's own words get this much beside that, however short the segment: they are what
    no later step can find out again. The most that any recorded session has is 6,900."""
    index_ratio: float = 0.06
    """Of the digest, for the index of names: it is looked up, not read."""
    message_chars: int = 4_000
    """A user's message longer than this is a paste; its head and tail say what it is."""
    first_words_chars: int = 80
    """What is kept of a message when there is room for nothing else."""
    short_message_chars: int = 480
    """What is kept of a paste when room is short: typed words before and after it are shorter."""
    answer_chars: int = 2_400
    """The last answer of a turn: nine in ten of the recorded ones are shorter."""
    long_answer_chars: int = 6_000
    """The same with room to spare: reviews and designs that later turns refer to by number."""
    short_answer_chars: int = 480
    """Its short form: the three or four sentences that carry it."""
    brief_answer_chars: int = 200
    """Its shortest form: the one or two sentences that carry it."""
    remark_chars: int = 240
    """Any other answer: what it found, in a sentence or two."""
    thought_chars: int = 320
    """A conclusion drawn in thinking: the sentence and the one it rests on."""
    command_chars: int = 260
    """Nine in ten recorded commands are shorter; the rest are scripts and commit messages."""
    outcome_chars: int = 220
    """The lines that say how a command ended, together."""
    error_chars: int = 320
    """An error's head and its telling line."""
    snippet_chars: int = 700
    """Of what one recent edit put in."""
    plan_chars: int = 2_000
    """An approved plan or a specification in outline: headings, list items, first sentences."""
    old_snippet_chars: int = 400
    """Of what an earlier edit put in, with room to spare."""
    report_chars: int = 700
    """What a sub-agent, a page or a tool server reported."""
    long_report_chars: int = 2_400
    """The same with room to spare."""
    prior_ratio: float = 0.2
    """Of the digest, for a summary that stands for history the log does not have."""
    recent_rounds: int = 50
    """Commands and errors this recent are told one by one; older ones only with room to spare."""
    current_rounds: int = 10
    """Rounds that count as what is being worked on now."""
    current_messages: int = 5
    """The user's last messages, whose names the next steps will need."""


LIMITS = DigestLimits()
