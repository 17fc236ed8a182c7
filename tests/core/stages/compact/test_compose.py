"""What fits into a digest."""

from longhold.core.messages import text_of
from longhold.core.messages.text import quote_rest
from longhold.core.stages.compact.compose import Manner, compose, gather_material
from longhold.core.stages.compact.segment import whole_segment
from longhold.core.view.items import Spoken

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
