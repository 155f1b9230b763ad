"""In the example that cancels, most simulations end before their last step, and the model has learned the step."""

from pathlib import Path

from example_copy import copy_example
from jobs import BIN, JobFolder


def test_simulations_are_cancelled_once_the_model_has_learned(tmp_path: Path) -> None:
    copy_example("cancel", tmp_path)
    command = [str(BIN / "mpidata"), "run", "cancel.yaml", "--set", "name=job"]
    result = JobFolder(tmp_path).run(command=command, timeout=90)
    assert result.status == 0, result.logs()
    cancelled = result.summary["cancelled"]
    assert len(cancelled) >= 3, result.summary
    assert f"cancelled {len(cancelled)} simulations" in result.log("trainer")
    assert result.summary["training"]["loss"]["last"] < 1e-4
    ended = {
        event["simulation"]: event["steps"] for event in result.events() if event["event"] == "simulation_cancelled"
    }
    assert sorted(ended) == cancelled and max(ended.values()) < 300
