"""The words that searches see."""

from longhold.core.messages.words import name_parts, words_of


def test_names_are_words_and_their_parts():
    assert words_of("the parseHTTPDate of some_file2") == [
        *("parsehttpdate", "parse", "http", "date", "file2"),
    ]


def test_only_camel_case_is_split_for_an_index():
    assert sorted(name_parts("getDefaultBranch plain CONST HTTPError").split()) == [
        *("Branch", "Default", "Error", "HTTP", "get"),
    ]
