"""The page of a report: verdict, tables and plot, from the report's values."""

import pytest

from browser import chromium, needs_chromium
from longhold.insight.pages.html import MOST_ROWS, render_report, report_data

HOSTILE = "</script><script>window.hit=1</script>\x1b[31m"
SPENDING = {
    "calls": 10,
    "uncached": 1_000,
    "read": 90_000,
    "write_5m": 9_000,
    "write_1h": 0,
    "output": 2_000,
    "recorded_usd": 1.5,
    "unrecorded_usd": 0.25,
    "unrecorded_output": 900,
    "unrecorded_calls": 0,
    "unpriced_calls": 0,
    "avoidable_usd": 0.5,
}


def group(name, usd=1.0, title=""):
    return {"name": name, "title": title, "spending": SPENDING | {"recorded_usd": usd}}


def report(**groups):
    days = [group(f"2026-01-{day:02}", usd=day / 10) for day in range(1, 31)]
    loss = {"cause": "pause", "words": "you came back late", "is_avoidable": True}
    return {
        "total": SPENDING,
        "losses": [loss | {"calls": 3, "tokens": 90_000, "usd": 0.5}],
        "groups": {"day": days, "project": [group("/home/dev/app", 4.0)], **groups},
    }


def test_names_and_titles_are_safe_to_show():
    data = report_data(report(session=[group("s1", title=HOSTILE)]), [HOSTILE])
    assert "\x1b" not in data.lines[0] + data.tables["session"]["title"][0]
    page = render_report(data)
    assert "<script>window.hit" not in page


def test_a_table_keeps_what_matters_most():
    many = [group(f"{n:06}") for n in range(MOST_ROWS + 5)]
    tables = report_data(report(day=many, session=many), ["$1"]).tables
    assert tables["day"]["name"][-1] == many[-1]["name"]
    assert tables["session"]["name"][0] == many[0]["name"]
    assert len(tables["day"]["name"]) == len(tables["session"]["name"]) == MOST_ROWS


@needs_chromium
def test_the_report_draws_itself_and_sorts(tmp_path):
    file = tmp_path / "report.html"
    data = report_data(
        report(session=[group("s1", title=HOSTILE)]), ["$46.50 in 30 days", "  1. a remedy"]
    )
    file.write_text(render_report(data), encoding="utf-8")
    with chromium(tmp_path / "profile") as browser:
        browser.open(file.as_uri())
        assert browser.run("document.querySelector('h1').textContent") == "$46.50 in 30 days"
        assert browser.run("document.querySelectorAll('#money canvas').length") == 1
        browser.run("document.querySelectorAll('#day th button')[5].click()")
        first = browser.run("document.querySelector('#day tbody tr').cells[0].textContent")
        assert first == "2026-01-30"
        assert browser.run("typeof window.hit") == "undefined"
        assert browser.complaints() == []
        assert browser.requested() == []


@pytest.mark.parametrize("lines", [[], ["No session with calls was found."]])
def test_a_report_of_nothing_is_a_page_all_the_same(lines):
    empty = {"total": dict.fromkeys(SPENDING, 0), "losses": [], "groups": {}}
    assert render_report(report_data(empty, lines)).startswith("<!doctype html>")
