"""What `mpidata run` prints at once when trainers die, join or leave while the others continue."""

import json
from pathlib import Path

from fake_library import make_plan

from mpidata.launch.page.changes import Changes
from mpidata.run.folder import RunFolder

KILLED = "was killed by SIGKILL"


def test_each_change_of_trainers_is_printed(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    before = [{"event": "trainer_lost", "trainer": 0, "left": 1, "how": "is of an earlier start"}]
    run.events.write_text("".join(json.dumps(event) + "\n" for event in before))
    changes = Changes(run, make_plan(run=tmp_path, world=9, trainers=5, trainer_spares=2))
    assert changes.lines() == []
    events = [
        {"event": "trainer_lost", "trainer": 1, "left": 2, "how": KILLED},
        {"event": "trainer_late", "trainer": 1, "seconds": 3.0},
        {"event": "trainer_joined", "trainer": 3},
        {"event": "trainer_lost", "trainer": 0, "left": 2, "how": KILLED},
        {"event": "trainer_lost", "trainer": 3, "left": 1, "how": KILLED},
        {"event": "trainer_lost", "trainer": 4, "left": 1, "how": KILLED},
        {"event": "trainer_lost", "trainer": 0, "left": 0, "how": KILLED},
        {"event": "trainer_retired", "trainer": 2},
        {"event": "trainer_left", "trainer": 2},
    ]
    with run.events.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
        file.write('{"event": "trainer_lost", "trainer": "\n')
    assert changes.lines() == [
        f"Trainer 1 (rank 2) {KILLED}; the other 2 take over what it had not trained on.",
        "Trainer 3 (rank 4), a spare, has taken a place, and trains from now on.",
        f"Trainer 0 (rank 1) {KILLED}; the other 2 take over what it had not trained on. Their output is in "
        f"{run.logs} and no longer shown here.",
        f"Trainer 3 (rank 4) {KILLED}; the other one takes over what it had not trained on.",
        f"Trainer 4 (rank 5), which waited as a spare, {KILLED}.",
        f"Trainer 0 (rank 1) {KILLED}.",
        "Trainer 2 (rank 3) no longer trains, because fewer trainers were requested.",
    ]
