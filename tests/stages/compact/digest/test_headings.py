"""Headings of a summary, and lists that only look like them."""

from holdfast.stages.compact.digest.headings import parts


def named(number, title):
    return title.lower() if (number, title) in ((1, "Intent"), (8, "Work"), (3, "Files")) else ""


def numbers(text):
    return [part.number for part in parts(text, named)[1]]


def test_words_make_a_heading_without_any_mark():
    """Number and name are enough where the number rises."""
    assert numbers("1. Intent\nx\n8) Work:\ny") == [1, 8]


def test_a_mark_makes_a_heading_if_its_number_rises():
    """A model may call a section by another name."""
    assert numbers("## 1. Intent\nx\n**2. Ideas**\ny\n**2. More**\n## 8. Work\nz") == [1, 2, 8]


def test_a_marked_line_does_not_take_the_place_of_the_named_section():
    """A bold list in the first section leaves the later ones whole."""
    assert numbers("## 1. Intent\n**8. be quick**\n## 8. Work\nz") == [1, 8]


def test_a_named_and_marked_heading_may_come_in_any_order():
    """The log's part stands behind the model's."""
    assert numbers("## 8. Work\nx\n## 3. Files\ny") == [8, 3]


def test_what_stands_before_the_first_heading_goes_out_by_itself():
    """It is no section."""
    lead, (part,) = parts("Hello.\n1. Intent\nx", named)
    assert (lead, part.text, part.whole) == ("Hello.", "x", "1. Intent\nx")
