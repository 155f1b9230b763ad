"""A run is killed as a whole after a cancel, and resumed: cancelled simulations stay so, the others complete."""

import contextlib
import json
import time
from typing import Any

import psutil
import pytest
from jobs import JobFolder, Result, python, ranks_of
from killing import events_of, wait_for_no_rank
from waiting import wait_until

SIMULATIONS = 6


def write(folder: JobFolder, **keys: Any) -> None:
    options = {"seed": 1, "steps": 40, "step_s": 0.02, "refreshes": 20, "elements": 5, "rows": False, "batch": 2}
    options |= {"simulations": SIMULATIONS, "validation": 0, "cancels": 0.3, "most": 2, "publishes": 0.1, "pause_s": 0}
    options |= {"ranks": 2, "trainers": 1, "first": 0, "deaths": 0, "spacing": 1}
    (folder.path / "kills").touch()
    (folder.path / "options.json").write_text(json.dumps(options))
    folder.variables["LOOP_OPTIONS"] = str(folder.path / "options.json")
    solvers = {"ranks_per_group": 2, "groups": 2, "program": python("loop/program.py")}
    folder.job(
        trainers={"program": python("loop/trainer.py", json.dumps(options))}, solvers=solvers,
        parameters={"count": SIMULATIONS, "space": {"alpha": [0.0, 1.0]}},
        fields={"u": {"dtype": "float32", "shape": [12, 6]}}, **keys,
    )  # fmt: skip


def kill_all(folder: JobFolder, process: Any) -> None:
    for one in [psutil.Process(process.pid), *ranks_of(folder.path)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def taken(folder: JobFolder) -> set[int]:
    lines = [line for path in folder.path.glob("acts-*") for line in path.read_text().split("\n")[:-1]]
    return {simulation for line in lines for simulation in json.loads(line).get("taken", [])}


@pytest.mark.full
@pytest.mark.parametrize("checkpoint", [None, {"every_s": 0.3}])
@pytest.mark.parametrize("moment", ["asked", "told"])
def test_cancelled_simulations_stay_cancelled_after_a_kill_and_resume(
    folder: JobFolder, moment: str, checkpoint: dict[str, float] | None
) -> None:
    write(folder, **({"checkpoint": checkpoint} if checkpoint else {}))
    began, process = time.monotonic(), folder.start()

    def come() -> bool:
        told = [event for event in events_of(folder.path) if event["event"] == "simulation_cancelled"]
        return bool(taken(folder) if moment == "asked" else told)

    wait_until(come, 40, every_s=0.001, alive=process)
    kill_all(folder, process)
    first: Result = folder.finish(process, 60, began)
    wait_for_no_rank(folder, 20)
    before = {event["simulation"] for event in events_of(folder.path) if event["event"] == "simulation_cancelled"}
    assert first.status != 0 and first.run is not None
    for path in folder.path.glob("acts-*"):
        path.unlink()
    result = folder.resume(first.run)
    assert result.status == 0, result.logs()
    cancelled, counts = set(result.summary.get("cancelled", [])), result.summary["simulations"]
    assert before <= cancelled <= before | taken(folder), (before, cancelled, taken(folder))
    assert counts["complete"] == SIMULATIONS - len(cancelled) and counts["failed"] == 0, counts
    starts = [at for at, event in enumerate(result.events()) if event["event"] == "start"]
    again = {event["simulation"] for event in result.events()[starts[-1] :] if event["event"] == "dispatch"}
    assert not before & again, (before, again)
