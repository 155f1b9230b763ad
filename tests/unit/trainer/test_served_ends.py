"""Who waits for whom on the parameter servers when a trainer reaches an end of its data."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpidata.trainer.local_sgd.meeting_points import How
from mpidata.trainer.served.parameter_server import ParameterServer


@pytest.mark.parametrize(("drawn", "said"), [(None, ["settle"]), (object(), ["settle", "rest"])])
def test_saving_trainer_is_waited_for_after_epochs_of_rows_but_not_of_streams(
    monkeypatch: pytest.MonkeyPatch, drawn: Any, said: list[str]
) -> None:
    """All trainers get equally many batches of rows, and save before the next one; a stream may have ended there."""
    calls: list[str] = []
    server = ParameterServer.__new__(ParameterServer)
    server._link = SimpleNamespace(settle=lambda: calls.append("settle"), rest=lambda: calls.append("rest"))
    server._members = SimpleNamespace(drawn=drawn, generation=0)
    waiting = np.zeros(1 + max(How), np.int64)
    waiting[How.HERE] = 2
    monkeypatch.setattr(server, "_round", lambda how, members: (waiting, 2))
    assert server.come(How.HERE)
    assert calls == said
