import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_library import make_plan

from mpidata.errors import LibraryError, MpidataError
from mpidata.native.library import AGAIN, SUCCESS, Event
from mpidata.scheduler.messages import LibraryMessages, Messages, index_of, text_of


class Library:
    """Stands in for libmpidata: notes calls, and answers with a status."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status = SUCCESS
        self.fill: Callable[[Event], None] = lambda event: None

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any) -> int:
            self.calls.append((name.removeprefix("mpidata_scheduler_"), *values))
            return self.status

        return call

    def mpidata_scheduler_poll(self, event: Any, timeout_s: float) -> int:
        self.fill(event._obj)
        return self.status

    def mpidata_last_error(self) -> bytes:
        return b"What. Where. What to do."


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def messages(library: Library) -> LibraryMessages:
    found = LibraryMessages(make_plan())
    found._library = library
    return found


def test_every_message_is_a_call(library: Library, messages: LibraryMessages) -> None:
    told: Messages = messages
    told.no_more(3)
    told.expect(5, 20, 2)
    told.validation()
    told.lose(4)
    told.gone(3)
    told.end_of_stream()
    told.stop()
    told.relieve(1, 8)
    told.checkpoint(12)
    told.all_gone()
    told.close()
    assert library.calls == [
        ("no_more", 3),
        ("expect", 5, 20, 2),
        ("validation",),
        ("lose", 4),
        ("gone", 3),
        ("end_of_stream",),
        ("stop",),
        ("relieve", 1, 8),
        ("checkpoint", 12),
        ("all_gone",),
        ("close",),
    ]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_dispatch_passes_a_row_of_the_table(library: Library, messages: LibraryMessages, n: int) -> None:
    table = np.arange(4.0 * n).reshape(4, n)
    messages.dispatch(2, 1, False, table[1])
    ((name, group, simulation, validation, values),) = library.calls
    assert (name, group, simulation, validation) == ("dispatch", 2, 1, False)
    # As the declared argument type converts it.
    pointer = ctypes.POINTER(ctypes.c_double).from_param(values)
    assert list(values) == table[1].tolist() and pointer is not None


def test_poll_gives_the_event_or_none(library: Library, messages: LibraryMessages) -> None:
    def fill(event: Event) -> None:
        event.kind, event.index, event.text = Event.REPORT, 1, "é loss".encode()

    library.fill = fill
    event = messages.poll(0.1)
    assert event is not None and event.kind == Event.REPORT and text_of(event) == "é loss"
    library.status = AGAIN
    assert messages.poll(0.1) is None


@pytest.mark.parametrize("name, values", [("no_more", (1,)), ("poll", (0.1,)), ("stop", ()), ("close", ())])
def test_a_failed_call_raises(library: Library, messages: LibraryMessages, name: str, values: tuple[Any, ...]) -> None:
    library.status = 10
    with pytest.raises(LibraryError, match="What. Where. What to do."):
        getattr(messages, name)(*values)


def test_not_open() -> None:
    with pytest.raises(RuntimeError):
        LibraryMessages(make_plan()).stop()


def test_text_that_is_cut_within_a_character() -> None:
    event = Event()
    event.text = ("x" * 2046 + "é").encode()
    assert len(event.text) == 2048
    assert text_of(event).startswith("xxx")
    event.text = event.text[:2047]
    assert text_of(event)[-1] == "\ufffd"


def test_index_of() -> None:
    assert index_of(Event(index=1, rank=7), 2) == 1
    with pytest.raises(MpidataError, match="Rank 7 sent a message as number 2 of 2"):
        index_of(Event(index=2, rank=7), 2)
