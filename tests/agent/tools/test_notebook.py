"""Notebooks as text and pictures."""

import json

import pytest

from longhold.agent.tools.read import MAX_PICTURES, NotANotebook, show_notebook


def _notebook(*outputs):
    cell = {"cell_type": "code", "source": "run()", "outputs": list(outputs)}
    return json.dumps({"cells": [cell]}).encode()


def test_long_output_is_cut():
    text, _ = show_notebook(_notebook({"output_type": "stream", "text": "x" * 10_500}))
    assert text.endswith("x\n[500 more characters]")


def test_a_result_is_shown_by_its_plain_form():
    result = {
        "output_type": "execute_result",
        "data": {"text/plain": ["1\n", "2"], "text/html": "<b>"},
    }
    assert show_notebook(_notebook(result)) == (
        "[cell 1: code]\nrun()\n[output of cell 1]\n1\n2",
        (),
    )


def test_pictures_past_a_number_are_left_out_and_counted():
    drawn = [{"data": {"image/png": "aGk="}} for _ in range(MAX_PICTURES + 2)]
    text, pictures = show_notebook(_notebook(*drawn))
    assert len(pictures) == MAX_PICTURES
    assert text.endswith("[2 more pictures are not shown]")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"nbformat": 3, "worksheets": []}'])
def test_what_has_no_cells_is_no_notebook(content):
    with pytest.raises(NotANotebook):
        show_notebook(content)
