"""A stand-in for MPI between trainers and loaders in one process: each loader is a thread that serves `Requests`."""

import ast
import itertools
import queue
import threading

import numpy as np

from mpidata.loading.transport import Closed, Joined, Kind, Lost, Parcel, Request, Retires

# NumPy parses the headers of its files by `ast.literal_eval`, which can fail in CPython before 3.11.8 and 3.12.2 if two
# threads call it (gh-106905). The loaders of a job are processes.
_one_at_a_time, _literal_eval = threading.Lock(), ast.literal_eval


def _locked(source):
    with _one_at_a_time:
        return _literal_eval(source)


ast.literal_eval = _locked


def copied(buffer):
    """Return the bytes of a buffer as they would arrive: in other memory, writable."""
    return memoryview(np.array(np.frombuffer(memoryview(buffer).cast("B"), np.uint8)) if len(buffer) else bytearray())


class FakeRequests:
    """The side of one loader."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.waiting = queue.Queue()
        self.at = []

    def next(self, timeout_s):
        try:
            return self.waiting.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def answer(self, request, status, pickle, buffers=()):
        parcel = Parcel(
            self.number,
            request.dataset,
            request.kind,
            request.number,
            int(status),
            copied(pickle),
            [copied(b) for b in buffers],
        )
        self.network.deliver(request.trainer, parcel)

    def sign_of_life(self, at, long=False):
        self.at.append(at)


class FakeNetwork:
    """Trainers and loaders of a job; each loader's thread runs `serve(requests)` until it receives Closed."""

    def __init__(self, serve, loaders=1, trainers=1):
        self.serve = serve
        self.lock = threading.Condition()  # notified when something arrives
        self.numbers = itertools.count()
        self.alive, self.retired = {}, set()
        self.events = []
        self.threads = []
        self.trainers = [FakeLoaders(self, trainer) for trainer in range(trainers)]
        for _ in range(loaders):
            self.start()

    def start(self):
        """Add a loader; return its number."""
        with self.lock:
            number = next(self.numbers)
            requests = self.alive[number] = FakeRequests(self, number)
            self.events.append(Joined(number))
            self.lock.notify_all()
        thread = threading.Thread(target=self.serve, args=(requests,), daemon=True)
        thread.start()
        self.threads.append(thread)
        return number

    def kill(self, number, at=""):
        """Kill a loader, at its last sign of life: its answers no longer arrive, and its thread is asked to end."""
        with self.lock:
            self.alive.pop(number).waiting.put(Closed())
            self.events.append(Lost(number, at))
            self.lock.notify_all()

    def retire(self, number):
        """Retire a loader: it gets no more requests, but still answers earlier ones."""
        with self.lock:
            self.retired.add(number)
            self.events.append(Retires(number))
            self.lock.notify_all()

    def deliver(self, trainer, parcel):
        with self.lock:
            if parcel.loader in self.alive:
                self.trainers[trainer].put(parcel)
                self.lock.notify_all()

    def close(self):
        with self.lock:
            for requests in self.alive.values():
                requests.waiting.put(Closed())
        for thread in self.threads:
            thread.join(10)


class FakeLoaders:
    """The side of one trainer."""

    def __init__(self, network, trainer):
        self.network, self.trainer = network, trainer
        self.parcels, self.told = {}, {}
        self.sent = []
        self.dropped = []

    def put(self, parcel):
        if parcel.dataset in self.parcels:
            self.parcels[parcel.dataset].append(parcel)

    def alive(self):
        with self.network.lock:
            return frozenset(self.network.alive) - self.network.retired

    def send(self, loader, dataset, kind, number, payload):
        with self.network.lock:
            self.sent.append((loader, dataset, int(kind), number, bytes(payload)))
            self.parcels.setdefault(dataset, [])
            if loader in self.network.alive and loader not in self.network.retired:
                request = Request(self.trainer, dataset, int(kind), number, copied(payload))
                self.network.alive[loader].waiting.put(request)
                return True
        return False

    def take(self, dataset, timeout_s):
        self.forget_dropped()
        with self.network.lock:
            return self.network.lock.wait_for(lambda: self.news(dataset), timeout_s)

    def news(self, dataset):
        told = self.told.get(dataset, 0)
        if told < len(self.network.events):
            self.told[dataset] = told + 1
            return self.network.events[told]
        return self.parcels[dataset].pop(0) if self.parcels.get(dataset) else None

    def drop(self, dataset):
        """Drop the dataset at the next call of take: garbage collection may call this at any point."""
        self.dropped.append(dataset)

    def forget_dropped(self):
        while self.dropped:
            dataset = self.dropped.pop()
            for loader in self.alive():
                self.send(loader, dataset, Kind.FORGET, 0, b"")
            with self.network.lock:
                self.parcels.pop(dataset, None)
