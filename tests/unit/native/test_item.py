"""A loader's work item has a key that is never cut, and a text that may be."""

import json
import os
from pathlib import Path

import pytest

from mpidata.loading.batch_messages import item_text
from mpidata.loading.part_messages import part_text
from mpidata.loading.parts import Part
from mpidata.native.item import item_of, text_of
from mpidata.run.exits import read_exit_note

LONG = "/" + "/".join(["a" * 200] * 5)


@pytest.mark.parametrize("end", ["", "é" * 300, "\udcff", "\n", '"', "\x7f", "日本" * 100])
def test_part_items_fit_and_are_unique(end: str) -> None:
    items = [part_text(Part(f"{LONG}/{number}/{end}part.npy", 1, 1)) for number in range(3)]
    assert len(set(items)) == 3
    for item in items:
        assert len(item.encode()) <= 231 and item.isprintable()
        assert text_of(item).startswith("part /aaa") and text_of(item).endswith("part.npy")


def test_undecodable_and_unprintable_part_names_stay_distinct() -> None:
    names = [os.fsdecode(b"/parts/\xff.npy"), os.fsdecode(b"/parts/\xfe.npy"), "/parts/\n.npy", "/parts/?.npy"]
    assert len({part_text(Part(name, 1, 1)) for name in names}) == 4


def test_index_items_name_their_dataset() -> None:
    assert item_text(0, 3) != item_text(1, 3) != item_text(1, "3")
    assert text_of(item_text(0, 3)) == "index 3 of DataLoader 0"
    assert item_text(0, "x" * 500 + "1") != item_text(0, "x" * 500 + "2")
    assert text_of("something else") == "something else"


def test_items_stored_unchanged_have_no_key() -> None:
    assert item_of("index 3 of DataLoader 0") == "index 3 of DataLoader 0"
    like_a_key = "0123456789abcdef index"
    assert text_of(item_of(like_a_key)) == like_a_key != item_of(like_a_key)
    assert len({item_of("a" * length) for length in range(225, 240)}) == 15
    assert all(len(item_of("a" * length)) <= 231 for length in range(225, 240))


def test_exit_note_with_invalid_utf_8_is_read(tmp_path: Path) -> None:
    note = {"rank": 3, "exit": None, "signal": 9, "joined": True, "told": False, "error": None, "item": "HERE"}
    (tmp_path / "note").write_bytes(json.dumps(note).encode().replace(b"HERE", b"part /a\xc3"))
    ended = read_exit_note(tmp_path / "note")
    assert ended is not None and ended.signal == 9 and str(ended.item).startswith("part /a")
