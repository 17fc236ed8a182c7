"""The request for notes: the current notes, sections that are too long, the user's words."""

from pathlib import Path

from longhold.core.stages.notes.update import ask_for_update, template

FILE = Path("/s/notes.draft.md")


def test_there_are_ten_sections_each_with_its_line(tmp_path):
    page = template(tmp_path)
    assert [each.heading for each in page.sections] == [
        *("Title", "Current state", "Task", "Files and functions", "Workflow"),
        *("Errors and corrections", "System documentation", "Learnings", "Key results", "Worklog"),
    ]
    assert all(each.description.startswith("_") for each in page.sections)


def test_the_notes_are_in_the_question_without_the_engines_lines(tmp_path):
    page = template(tmp_path).with_written({"Task": "Fix {path}"}).with_logs({"Task": "- T1"})
    asked = ask_for_update(page, FILE, tmp_path)
    assert "Fix {path}" in asked and str(FILE) in asked
    assert "- T1" not in asked
    assert "Condense" not in asked


def test_what_is_too_long_is_named(tmp_path):
    page = template(tmp_path).with_written({"Task": "word " * 8_000, "Learnings": "word " * 8_000})
    asked = ask_for_update(page, FILE, tmp_path)
    assert asked.count("Condense it") == 2
    assert "Shorten it hard now" in asked and '"Current state"' in asked.split("Shorten it")[1]


def test_template_and_words_can_be_the_users_own(tmp_path):
    own = tmp_path / "notes"
    own.mkdir()
    (own / "template.md").write_text("## Ship\n_Which one._\n")
    (own / "prompt.md").write_text("Note {path}:\n{notes}")
    page = template(tmp_path)
    assert [each.heading for each in page.sections] == ["Ship"]
    assert ask_for_update(page, FILE, tmp_path).startswith(f"Note {FILE}:\n## Ship")
