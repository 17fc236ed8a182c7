"""What fits into a digest."""

import re

from longhold.core.messages import text_of
from longhold.core.messages.text import quote_rest
from longhold.core.stages.compact.compose import Manner, compose, gather_material
from longhold.core.stages.compact.segment import whole_segment
from longhold.core.stages.compact.summary import Written
from longhold.core.view.items import Spoken
from longhold.core.view.tokens import estimate_tokens

PASTE = "\n".join(f"10:{n:04} ERROR importer row {n}: bad value {n * 13:x}" for n in range(1_200))


def test_headings_and_the_index_of_names_take_nothing_from_the_users_words(talk):
    one = talk()
    one.turn(f"Mend what it printed:\n{PASTE}", words=20)
    one.turn("and then test it", words=20)
    segment = whole_segment(one.view)
    said = [text_of(item.content) for item in segment.items if isinstance(item, Spoken)]
    material = gather_material(one.view.history, segment, segment_tokens=1_000)
    told = compose(material, None, Manner()).text
    assert [words[:40] for words in said if quote_rest(words) not in told] == []


def test_a_long_message_in_between_loses_its_middle_if_the_words_take_too_much(talk):
    one = talk()
    short, last = "Use only the file that I named.", f"Now it prints this:\n{PASTE[:4_000]}"
    one.turn("Look at the importer.", words=20)
    one.turn(f"Why is this slow?\n{PASTE}\nPlease fix it, and say why.", words=20)
    one.turn(short, words=20)
    one.turn(last, words=20)
    segment = whole_segment(one.view)
    few, many = (
        gather_material(one.view.history, segment, segment_tokens=tokens)
        for tokens in (90_000, 2_000_000)
    )
    for written in (None, Written(text="1. Request: the importer")):
        text = compose(few, written, Manner(has_history=True)).text
        assert "Why is this slow?" in text
        assert "Please fix it, and say why." in text
        assert PASTE.splitlines()[600] not in text
        assert re.search(r"left out, all in \[#\d+\] …\]", text)
        assert quote_rest(short) in text
        assert quote_rest(last) in text
        assert estimate_tokens(text) < 9_000
    assert PASTE.splitlines()[600] in compose(many, None, Manner(has_history=True)).text
