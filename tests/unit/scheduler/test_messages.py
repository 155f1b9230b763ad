import ctypes
import struct
from typing import Any

import numpy as np
import pytest
from fake_library import make_event, make_plan

from mpidata.errors import LibraryError, MpidataError
from mpidata.native.constants import SUCCESS
from mpidata.native.event import CheckpointWritten, Event, Goodbye, Held, Next, Report, Status, read
from mpidata.native.structures import RawEvent
from mpidata.scheduler.messages import LibraryMessages, Messages, index_of


class Library:
    """Stands in for libmpidata: records calls, and answers with a status."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.status = SUCCESS
        self.raw: list[Any] = []  # incoming events

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any) -> int:
            self.calls.append((name.removeprefix("mpidata_scheduler_"), *values))
            return self.status

        return call

    def mpidata_scheduler_poll(self, events: Any, room: int, timeout_s: float, came: ctypes.c_int) -> int:
        came.value = len(self.raw)
        events[: came.value] = self.raw
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


def test_every_message_calls_the_library(library: Library, messages: LibraryMessages) -> None:
    told: Messages = messages
    told.no_more(3)
    told.expect(5, 20, 2)
    told.validation()
    told.lose(4)
    told.lose(2, "loader", "index 7")
    told.gone(3)
    told.gone(5, "loader")
    told.serves(1)
    told.release(6)
    told.release(7, "inference")
    told.answers(8)
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
        ("lose", 2, 4, b""),
        ("lose", 3, 2, b"index 7"),
        ("gone", 2, 3),
        ("gone", 3, 5),
        ("serves", 1),
        ("release", 3, 6),
        ("release", 5, 7),
        ("answers", 8),
        ("end_of_stream",),
        ("stop",),
        ("relieve", 1, 8),
        ("checkpoint", 12),
        ("all_gone",),
        ("close",),
    ]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_dispatch_passes_the_parameters_of_the_simulation(library: Library, messages: LibraryMessages, n: int) -> None:
    table = np.arange(4.0 * n).reshape(4, n)
    messages.dispatch(2, 1, 1, False, table[1])
    ((name, group, simulation, by_try, validation, values),) = library.calls
    assert (name, group, simulation, by_try, validation) == ("dispatch", 2, 1, 1, False)
    # As the declared argument type converts it.
    pointer = ctypes.POINTER(ctypes.c_double).from_param(values)
    assert list(values) == table[1].tolist() and pointer is not None


REPORTS = b"".join(
    struct.pack("=qd", batch, value) + name.encode() + b"\0"
    for name, batch, value in [("é loss", 7, 0.5), ("lr", 8, -1e300)]
)


def raw_of(kind: int, **values: Any) -> RawEvent:
    raw = RawEvent(kind=kind, role=1, index=1, rank=2, text=values.pop("text", "").encode())
    packed = values.pop("packed", b"")
    ctypes.memmove(ctypes.addressof(raw) + RawEvent.text.offset, packed, len(packed))
    for place, value in values.items():
        content, _, name = place.partition("__")
        setattr(getattr(raw, content), name, value)
    return raw


@pytest.mark.parametrize(
    "kind, values, expected, said",
    [
        (1, {"closed__simulation": -1}, Next, {"simulation": -1, "failed": 0}),
        (1, {"closed__steps": 7, "closed__failed": 2, "text": "é"}, Next, {"steps": 7, "failed": 2, "text": "é"}),
        (3, {"held__simulation": 4, "held__by_try": 3}, Held, {"simulation": 4, "by_try": 3}),
        (4, {"status__starved": 1}, Status, {"starved": True, "full": False, "statistics": (0,) * 8}),
        (
            5,
            {"report__bytes": len(REPORTS), "packed": REPORTS},
            Report,
            {"values": (("é loss", 7, 0.5), ("lr", 8, -1e300))},
        ),
        (7, {}, Goodbye, {"index": 1, "rank": 2, "of_solver": False}),
        (10, {"written__number": 1, "written__bytes": 9}, CheckpointWritten, {"number": 1, "bytes": 9, "batch": 0}),
    ],
)
def test_poll_returns_the_events(
    library: Library, messages: LibraryMessages, kind: int, values: Any, expected: type[Event], said: dict[str, Any]
) -> None:
    library.raw = [raw_of(kind, **values), raw_of(7)]
    event, goodbye = messages.poll(0.1)
    assert type(event) is expected and said.items() <= vars(event).items() and type(goodbye) is Goodbye


def test_poll_returns_an_empty_list_without_events(library: Library, messages: LibraryMessages) -> None:
    assert messages.poll(0.1) == []


def test_event_of_unknown_kind_is_refused(library: Library, messages: LibraryMessages) -> None:
    library.raw = [raw_of(77)]
    with pytest.raises(MpidataError, match="Rank 2 sent a message of unknown kind 77"):
        messages.poll(0.1)


@pytest.mark.parametrize("name, values", [("no_more", (1,)), ("poll", (0.1,)), ("stop", ()), ("close", ())])
def test_a_failed_call_raises(library: Library, messages: LibraryMessages, name: str, values: tuple[Any, ...]) -> None:
    library.status = 10
    with pytest.raises(LibraryError, match="What. Where. What to do."):
        getattr(messages, name)(*values)


def test_call_before_open_raises() -> None:
    with pytest.raises(RuntimeError):
        LibraryMessages(make_plan()).stop()


def test_text_cut_within_a_character_ends_with_a_replacement_character() -> None:
    raw = raw_of(8, text="x" * 2046)
    raw.text += "é".encode()
    for text, end in ((raw.text, "é"), (raw.text[:2047], "\ufffd")):
        raw.text = text
        assert vars(read(raw))["text"] == "x" * 2046 + end


def test_index_of_refuses_numbers_out_of_range() -> None:
    assert index_of(make_event(Goodbye, index=1, rank=7), 2) == 1
    with pytest.raises(MpidataError, match="Rank 7 sent a message as number 2 of 2"):
        index_of(make_event(Goodbye, index=2, rank=7), 2)
