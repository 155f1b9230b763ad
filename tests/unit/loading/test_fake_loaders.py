"""The stand-in for MPI fulfils the contract of transport.py."""

import numpy as np
import pytest
from fake_loaders import FakeNetwork

from mpidata.loading.transport import Closed, Joined, Kind, Lost, Parcel, Status


def echo(requests):
    while not isinstance(request := requests.next(1.0), Closed):
        if request is not None:
            requests.sign_of_life(f"number {request.number}")
            requests.answer(request, Status.OK, request.payload, [np.arange(3), b""])


@pytest.fixture
def network():
    network = FakeNetwork(echo, loaders=2)
    yield network
    network.close()


def test_request_is_answered_by_a_parcel_of_its_dataset_and_loader(network):
    loaders = network.trainers[0]
    assert loaders.alive() == {0, 1}
    loaders.send(1, 7, Kind.BATCH, 3, b"x")
    loaders.send(0, 8, Kind.BATCH, 4, b"")
    assert [loaders.take(7, 1.0), loaders.take(7, 1.0)] == [Joined(0), Joined(1)]
    parcel = loaders.take(7, 1.0)
    assert isinstance(parcel, Parcel)
    assert (parcel.loader, parcel.dataset, parcel.number, bytes(parcel.pickle)) == (1, 7, 3, b"x")
    assert np.frombuffer(parcel.buffers[0], int).tolist() == [0, 1, 2] and not parcel.buffers[1]
    assert loaders.take(7, 0.0) is None


def test_dead_loader_stops_answering_and_is_reported_to_each_dataset(network):
    loaders = network.trainers[0]
    network.kill(0)
    loaders.send(0, 1, Kind.BATCH, 1, b"")
    assert loaders.alive() == {1}
    for dataset in 1, 2:
        assert [loaders.take(dataset, 0.1) for _ in range(4)] == [Joined(0), Joined(1), Lost(0), None]


def test_closed_dataset_receives_no_parcels(network):
    loaders = network.trainers[0]
    loaders.send(0, 1, Kind.BATCH, 1, b"")
    loaders.drop(1)
    loaders.take(2, 0.0)
    assert [loaders.take(1, 0.1) for _ in range(3)] == [Joined(0), Joined(1), None]
