"""The stand-in for ripgrep, by itself."""

import json

from longhold.agent.tools.scan import Query, main


def _run(query):
    out: list[bytes] = []
    status = main([query.to_json()], out.append)
    return status, b"".join(out)


def test_it_prints_what_ripgrep_prints(tmp_path):
    (tmp_path / "a").write_text("x\ny\nz\nz\nx\n")
    (tmp_path / "b").write_text("x")
    assert _run(Query(path=str(tmp_path), pattern="x", after=1)) == (
        0,
        b"a\x001:x\na\x002-y\n--\na\x005:x\n--\nb\x001:x\n",
    )


def test_it_exits_as_ripgrep_does(tmp_path, capsys):
    (tmp_path / "a").write_text("x\n")
    assert _run(Query(path=str(tmp_path), pattern="x", only_names=True)) == (0, b"a\0")
    assert _run(Query(path=str(tmp_path), pattern="y")) == (1, b"")
    assert _run(Query(path=str(tmp_path), pattern="(")) == (2, b"")
    assert "unterminated" in capsys.readouterr().err


def test_it_lists_files(tmp_path):
    for name in ("a.py", "b.txt"):
        (tmp_path / name).write_text("")
    assert _run(Query(path=str(tmp_path), wanted=r".*\.py")) == (0, b"a.py\0")


def test_a_query_survives_the_way_to_its_process(tmp_path):
    query = Query(path="/ä", pattern="\"'\n\\", before=3)
    assert Query(**json.loads(query.to_json())) == query


def test_empty_matches_belong_to_the_line_they_are_in(tmp_path):
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "unfinished").write_text("x")
    expected = b"a\x001:x\nunfinished\x001:x\n"
    for pattern in ("^", "$"):
        assert _run(Query(path=str(tmp_path), pattern=pattern, is_multiline=True)) == (0, expected)
        assert _run(Query(path=str(tmp_path), pattern=pattern)) == (0, expected)
