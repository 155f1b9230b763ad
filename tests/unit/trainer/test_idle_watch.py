"""A trainer that draws nothing while its buffer is full prints once where its script is."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_library import make_plan
from waiting import wait_until

from mpidata.trainer import idle_watch
from mpidata.trainer.idle_watch import IdleWatch, Pace


class Script:
    """A script that has taken `batches` batches, and takes no more, or another one with every second look."""

    def __init__(
        self, batches: int = 3, holds_up: bool = True, outside: bool = False, mates: str = "", draws: bool = False
    ) -> None:
        self.batches, self.holds_up, self.outside, self.mates = batches, holds_up, outside, mates
        self.draws = draws
        self.looks = 0
        self.waited: list[float] = []

    def pace(self) -> Pace:
        self.looks += 1
        self.batches += self.draws and self.looks % 2 == 0
        return Pace(self.batches, self.holds_up, "its buffer is full", self.outside, self.mates)

    def wait_for_looks(self, count: int) -> None:
        wanted = self.looks + count
        wait_until(lambda: self.looks >= wanted, 30)


def watch(run: Path, script: Script, index: int = 1, after_s: float = 0.05, trainers: int = 2) -> IdleWatch:
    (run / "logs").mkdir(exist_ok=True)
    plan = make_plan(run=run, trainers=trainers)
    watching = IdleWatch(plan, index, script.pace, script.waited.append, after_s, every_s=0.01)
    watching.start()
    return watching


def wait_until_told(watching: IdleWatch) -> None:
    wait_until(lambda: watching._told, 30)
    watching.stop()
    watching._thread.join(30)


def waits_for_the_others(release: threading.Event) -> None:
    release.wait()


def test_idle_trainer_prints_its_stacks_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    release = threading.Event()
    other = threading.Thread(target=waits_for_the_others, args=[release], name="training")
    other.start()
    wait_until_told(watch(tmp_path, Script()))
    release.set()
    told = capfd.readouterr().err
    assert told.startswith(
        "mpidata: Trainer 1 has drawn nothing for 0.05 s (after 3 batches), although its buffer is full"
    )
    assert "  Thread training:\n" in told and "in waits_for_the_others\n    release.wait()\n" in told.replace(
        "      ", "    "
    )
    assert "Thread MainThread:" in told and "mpidata-idle" not in told
    assert (tmp_path / "logs" / "idle.log").read_text() == told


def test_script_outside_its_loop_is_reported_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wait_until_told(watch(tmp_path, Script(outside=True)))
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and "Its script has left the loop over the stream." in told
    assert "the job stops at stream.close() or when the script ends.\n" in told
    assert (tmp_path / "logs" / "idle.log").read_text() == told


def test_idle_trainer_0_writes_no_idle_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wait_until_told(watch(tmp_path, Script(), index=0))
    assert "Trainer 0 has drawn nothing" in capfd.readouterr().err and not (tmp_path / "logs" / "idle.log").exists()


def test_trainers_that_draw_or_block_nothing_are_not_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for script, after_s in (Script(holds_up=False), 0.03), (Script(draws=True), 0.3):
        clock = SimpleNamespace(monotonic=lambda script=script: 0.01 * script.looks, process_time=time.process_time)
        monkeypatch.setattr(idle_watch, "time", clock)
        watching = watch(tmp_path, script, after_s=after_s)
        script.wait_for_looks(40)
        assert watching._thread.is_alive()
        watching.stop()
        watching._thread.join(30)
    assert capfd.readouterr().err == ""


def test_trainer_waiting_in_a_collective_writes_no_idle_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_watch, "_COLLECTIVES", (__file__,))  # as if this were torch.distributed
    script = Script()
    wait_until_told(watch(tmp_path, script))
    assert "It waits for the other trainers, in a collective" in capfd.readouterr().err
    assert not (tmp_path / "logs" / "idle.log").exists()
    assert script.waited and script.waited == sorted(script.waited) and script.waited[-1] >= 0.05


def test_mate_waiting_elsewhere_is_named_in_the_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_watch, "_COLLECTIVES", (__file__,))  # as if this were torch.distributed
    wait_until_told(watch(tmp_path, Script(mates="mate 1 waits in the next batch"), index=0, trainers=1))
    told = capfd.readouterr().err
    assert "It waits for its mates, in a collective of torch.distributed. Meanwhile mate 1 waits in the next" in told
