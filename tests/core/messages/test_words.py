"""The words that searches use."""

from longhold.core.messages.words import name_parts, split_unspaced, words_of


def test_names_are_words_and_their_parts():
    assert words_of("the parseHTTPDate of some_file2") == [
        *("parsehttpdate", "parse", "http", "date", "file2"),
    ]


def test_only_camel_case_is_split_for_an_index():
    assert sorted(name_parts("getDefaultBranch plain CONST HTTPError").split()) == [
        *("Branch", "Default", "Error", "HTTP", "get"),
    ]


def test_text_without_spaces_is_split_into_pairs():
    assert split_unspaced("see 东京都 and タブ").split() == [
        *("see", "东京", "京都", "东", "京", "都", "and", "タブ"),
    ]
    assert words_of(split_unspaced("我的猫")) == ["我的", "的猫", "猫"]
