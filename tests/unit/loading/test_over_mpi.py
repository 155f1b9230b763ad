"""How requests and parcels pass through the library: who owns which memory, and for how long."""

import ctypes
import gc

import numpy as np
import pytest

from mpidata.errors import LibraryError
from mpidata.loading.over_mpi import MpiLoaders, MpiRequests, memory_of
from mpidata.loading.transport import Closed, Joined, Kind, Lost, Parcel, Request, Retires
from mpidata.native.constants import END, SUCCESS
from mpidata.native.constants import ERR_AGAIN as AGAIN
from mpidata.native.structures import Taken


class FakeLibrary:
    """Returns the items of `coming`, each a Taken or a status; records its calls."""

    def __init__(self, *coming):
        self.coming, self.released, self.answers, self.sent, self.starts = list(coming), [], [], [], []

    def _give(self, target):
        what = self.coming.pop(0) if self.coming else AGAIN
        if isinstance(what, int):
            return what
        ctypes.memmove(target, ctypes.addressof(what), ctypes.sizeof(what))
        return SUCCESS

    def mpidata_trainer_take(self, dataset, seen, target, timeout_s):
        return self._give(target)

    def mpidata_loader_next(self, target, timeout_s):
        return self._give(target)

    def mpidata_parcel_release(self, parcel):
        self.released.append(parcel)

    def mpidata_loader_answer(self, asked, status, n, addresses, sizes, ticket):
        parts = [ctypes.string_at(addresses[i], sizes[i]) if sizes[i] else b"" for i in range(n)]
        self.answers.append((asked._obj.peer, asked._obj.number, status, parts, ticket))
        return SUCCESS

    def mpidata_loader_sent(self, ticket):
        if not self.sent:
            return AGAIN
        ticket._obj.value = self.sent.pop(0)
        return SUCCESS

    def mpidata_loader_starts(self, yes):
        self.starts.append(bool(yes))

    def mpidata_beat_at(self, at):
        self.at = at

    def mpidata_last_error(self):
        return b"It is broken."


def make_parcel(*parts):
    """Return a Taken of these parts, and the memory that it points to."""
    offsets, at = [], 0
    for part in parts:
        offsets.append(at)
        at += -(-len(part) // 64) * 64
    memory = (ctypes.c_char * max(at, 1))()
    for offset, part in zip(offsets, parts, strict=True):
        ctypes.memmove(ctypes.addressof(memory) + offset, part, len(part))
    n = len(parts)
    lists = (ctypes.c_int64 * n)(*offsets), (ctypes.c_int64 * n)(*map(len, parts))
    taken = Taken(parcel=77, peer=2, dataset=5, kind=1, status=0, number=9, n_parts=n, bytes=at)
    taken.offsets, taken.sizes, taken.memory = *lists, ctypes.addressof(memory)
    return taken, (memory, lists)


def test_parcel_is_released_when_nothing_refers_to_its_memory():
    taken, kept = make_parcel(b"pickle", b"", b"x" * 20000)
    library = FakeLibrary(taken)
    parcel = MpiLoaders(library).take(5, 0.0)
    assert isinstance(parcel, Parcel) and (parcel.loader, parcel.dataset, parcel.number) == (2, 5, 9)
    assert bytes(parcel.pickle) == b"pickle" and [bytes(buffer) for buffer in parcel.buffers] == [b"", b"x" * 20000]
    array = np.frombuffer(parcel.buffers[1], np.uint8)
    array[0] = 1
    assert kept[0][64] == b"\x01"
    del parcel
    gc.collect()
    assert library.released == []
    del array
    gc.collect()
    assert library.released == [77]


def test_memory_of_a_small_parcel_is_copied_and_released_immediately():
    taken, kept = make_parcel(b"text", b"", b"x" * 100)
    library = FakeLibrary()
    memory = memory_of(taken, library)
    assert library.released == [77] and isinstance(memory, bytearray)
    kept[0][:] = b"\0" * len(kept[0])
    assert memory[:4] == b"text" and memory[64:164] == b"x" * 100 and len(memory) == taken.bytes
    large, kept = make_parcel(b"text", b"x" * 20000)
    library = FakeLibrary()
    view = memory_of(large, library)
    assert library.released == [] and view[64] == ord("x")
    del view
    gc.collect()
    assert library.released == [77]


def test_news_are_counted_per_dataset_and_name_the_item_of_a_lost_loader():
    joined, retires, lost = Taken(peer=3, news=1), Taken(peer=3, news=2), Taken(peer=3, at=b"index 4")
    loaders = MpiLoaders(FakeLibrary(joined, retires, lost, joined, END, 8))
    told = [loaders.take(dataset, 0.0) for dataset in (1, 1, 1, 2)]
    assert told == [Joined(3), Retires(3), Lost(3, "index 4"), Joined(3)]
    assert loaders._seen == {1: 3, 2: 1}
    assert loaders.take(1, 0.0) == Closed()
    with pytest.raises(LibraryError, match="It is broken"):
        loaders.take(1, 0.0)
    assert loaders.take(1, 0.0) is None


def test_send_returns_whether_the_loader_accepted_the_request():
    library = FakeLibrary()
    library.mpidata_trainer_request = lambda loader, *request: (SUCCESS, AGAIN, 8)[loader]
    loaders = MpiLoaders(library)
    assert loaders.send(0, 1, 2, 3, b"") is True and loaders.send(1, 1, 2, 3, b"") is False
    with pytest.raises(LibraryError, match="It is broken"):
        loaders.send(2, 1, 2, 3, b"")


def test_dataset_dropped_during_a_call_is_forgotten_at_the_next_call():
    """Garbage collection may run a finalizer anywhere, even while the lock is held."""
    library, told = FakeLibrary(Taken(peer=3, news=1)), []
    library.mpidata_trainer_request = lambda *request: told.append(request[:3]) or SUCCESS
    library.mpidata_trainer_forget = lambda dataset: told.append(dataset) or SUCCESS
    loaders = MpiLoaders(library)
    with loaders._lock:
        loaders.drop(1)
    assert told == []
    loaders.take(2, 0.0)
    assert told == [(3, 1, int(Kind.FORGET)), 1]
    loaders.drop(2)
    assert told[2:] == [(3, 2, int(Kind.FORGET)), 2]


def test_answer_buffers_are_kept_until_they_are_sent():
    taken, _kept = make_parcel(b"ask")
    library = FakeLibrary(taken)
    requests = MpiRequests(library)
    request = requests.next(0.0)
    assert isinstance(request, Request) and (request.trainer, bytes(request.payload)) == (2, b"ask")
    parts = [bytearray(b"abc"), memoryview(np.arange(3.0)).cast("B"), b""]
    requests.answer(request, 1, b"p", parts)
    assert library.answers == [(2, 9, 1, [b"p", b"abc", np.arange(3.0).tobytes(), b""], 1)]
    assert list(requests._kept) == [1]
    library.sent = [1]
    assert requests.next(0.0) is None and not requests._kept


def test_first_sign_of_life_ends_the_start_and_idle_loaders_name_no_item():
    library = FakeLibrary()
    requests = MpiRequests(library)
    for at, long in (("index 1", False), ("index 2", False), ("dataset 1", True)):
        requests.sign_of_life(at, long)
    assert library.starts == [False, True] and library.at == b"dataset 1"
    requests.next(0.0)
    assert library.at == b"" and library.starts == [False, True, False]
