"""The demands of a document."""

from longhold.core.stages.facts.carried import demands

PLAN = """# Importer
## Tests
Each column must be checked.
## Limits
At most 40 files are open.
## Tests
Never call the network.
"""


def test_a_heading_that_repeats_stands_over_its_own_lines():
    assert demands(PLAN, 500).splitlines() == [
        "Tests:",
        "Each column must be checked.",
        "Limits:",
        "At most 40 files are open.",
        "Tests:",
        "Never call the network.",
    ]


def test_what_is_said_twice_is_shown_once_and_the_least_binding_goes_first():
    text = "# A\n# B\nIt must be fast.\nIt must be fast.\nIt was a sunny day, if that counts for anything.\n"
    assert demands(text, 40).splitlines()[:2] == ["B:", "It must be fast."]
    assert demands(text, 40).count("fast") == 1
    assert "sunny" not in demands(text, 40)
