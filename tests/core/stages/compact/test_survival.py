"""Whether exact names survive, and the index of the others."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text, ToolUse
from longhold.core.stages.compact.compose import Names, check_survival, recent_names
from longhold.core.stages.compact.digest.context import DigestLimits
from longhold.core.view.items import Result, Round, Spoken
from longhold.core.view.tokens import estimate_tokens


def spoken(n, text):
    """Let the user say something."""
    return Spoken(id=n, order=n, content=(Text(text=text),))


def call(n, result="", **given):
    """Let the model call a tool."""
    use = ToolUse(id=f"t{n}", name="Bash", input=given)
    came = Result(id=n, tool_use_id=f"t{n}", content=result)
    return Round(id=n, order=n, response_id=f"r{n}", content=(use,), results=(came,))


def test_names_that_only_results_have_do_not_count():
    items = [
        spoken(1, "look at src/app.py"),
        call(2, "found_it in src/app.py", command="grep load_all", deep={"list": ["--fast", 8080]}),
    ]
    assert recent_names(items) == Names(
        said={
            "src/app.py": "path",
            "load_all": "name",
            "--fast": "flag",
            "8080": "number",
        },
    )


def test_only_the_last_rounds_count_and_all_that_is_still_wanted():
    limits = DigestLimits(current_rounds=1, current_messages=1)
    items = [spoken(1, "use old_name"), call(2, command="run_one"), call(3, command="run_two")]
    names = recent_names(items, ["never touch db_file"], limits)
    assert list(names.said) == ["old_name", "db_file", "run_two"]
    assert list(names.earlier) == ["run_one"]


def test_older_names_are_listed_after_the_recent_ones_while_they_fit():
    names = Names(said={"c_d": "name"}, earlier={"src/x.py": "path", "e_f": "name"})
    found = check_survival("we renamed e_f", names, 100)
    assert found.index.endswith("- paths: src/x.py\n- names: c_d")
    assert (found.names, found.missing, found.share) == (1, 1, 1.0)
    least = next(n for n in range(100) if check_survival("", names, n).index)
    assert check_survival("", names, least).index.endswith("- names: c_d")


def test_missing_names_are_listed_by_kind():
    names = Names(said={"a_b": "name", "src/x.py": "path", "c_d": "name", "42": "number"})
    found = check_survival("we renamed a_b", names, 100)
    assert found.index == (
        "Names in use lately that are not above:\n- paths: src/x.py\n- names: c_d\n- numbers: 42"
    )
    assert (found.names, found.missing, found.share) == (4, 3, 1.0)


def test_nothing_missing_needs_no_index():
    assert check_survival("a_b", Names(said={"a_b": "name"}), 100).index == ""


def test_a_name_inside_a_listed_one_is_not_listed_twice():
    names = Names(said={"src/x.py": "path", "x.py": "path"})
    found = check_survival("", names, 100)
    assert (found.listed, found.index.count("x.py")) == (2, 1)


def test_no_names_are_all_names():
    assert check_survival("", Names(said={}), 10).share == 1.0


@given(
    st.lists(st.from_regex(r"[a-z]{2,8}_[a-z]{2,8}", fullmatch=True), max_size=40),
    st.integers(0, 80),
)
def test_the_index_keeps_to_its_budget(drawn, budget):
    names = Names(said=dict.fromkeys(drawn, "name"))
    found = check_survival("", names, budget)
    assert estimate_tokens(found.index) <= budget + 8 or not found.index
    assert 0 <= found.share <= 1


def test_with_little_room_names_in_words_come_before_names_in_code():
    said = Round(id=2, order=2, response_id="r2", content=(Text(text="I renamed talked_about."),))
    names = recent_names([call(1, command="only_in_code only_in_code"), said])
    assert list(names.said) == ["talked_about", "only_in_code"]


def test_with_little_room_a_path_comes_last_whose_file_the_text_names():
    names = Names(said={"/a/b/c/known.py": "path", "other_name": "name"})
    assert check_survival("edited known.py", names, 16).index.endswith("- names: other_name")
