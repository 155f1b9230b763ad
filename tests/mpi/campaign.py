"""Run the campaigns of random jobs with new seeds for a given time: `make campaign MINUTES=30`.

Each job depends on its seed alone: `python tests/mpi/campaign.py kills --seeds 17` repeats one.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import carried_campaign
import elastic_campaign
import fault_campaign
import inference_campaign
import kill_campaign
import loader_campaign
import loop_campaign
import resume_campaign
from jobs import JobFolder, kill_ranks

CAMPAIGNS: dict[str, ModuleType] = {
    "kills": kill_campaign,
    "carried": carried_campaign,
    "resumes": resume_campaign,
    "loaders": loader_campaign,
    "elastic": elastic_campaign,
    "inference": inference_campaign,
    "faults": fault_campaign,
    "loop": loop_campaign,
}


def seeds(minutes: float, given: list[int], count: int | None) -> Iterator[int]:
    """Yield the given seeds, or new ones until the time is up or `count` have been tried."""
    if given:
        yield from given
        return
    deadline, tried = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < deadline and (count is None or tried < count):
        yield random.SystemRandom().randrange(1 << 31)
        tried += 1


def run_one(name: str, built: Path, seed: int) -> bool:
    """Run one random job; the folder of a failed one is kept and printed."""
    campaign = CAMPAIGNS[name]
    folder = Path(tempfile.mkdtemp(prefix=f"mpidata-campaign-{seed}-"))
    print(f"{name} {seed}: {campaign.draw(seed)}", flush=True)
    try:
        print(f"{name} {seed}: passed, {campaign.run_draw(JobFolder(folder), built, seed)}", flush=True)
    except Exception:
        (folder / "failure.txt").write_text(traceback.format_exc())
        kill_ranks(folder)
        print(f"{name} {seed}: FAILED, see {folder / 'failure.txt'}", flush=True)
        print(f"  again: {sys.executable} {' '.join(sys.argv[:1])} {name} --seeds {seed}", flush=True)
        return False
    shutil.rmtree(folder, ignore_errors=True)
    return True


def main() -> int:
    """Run the campaigns; returns 1 if a job has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="campaign", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--minutes", type=float, default=30, help="how long new draws are begun")
    parser.add_argument("--draws", type=int, help="how many of each, at most")
    parser.add_argument("--seeds", type=int, nargs="+", default=[], help="run these again")
    given = parser.parse_args()
    if unknown := set(given.names) - CAMPAIGNS.keys():
        parser.error(f"there is no campaign {', '.join(sorted(unknown))}; there are {', '.join(CAMPAIGNS)}")
    names = given.names or list(CAMPAIGNS)
    with tempfile.TemporaryDirectory(prefix="mpidata-campaign-") as built:
        for name in names:
            CAMPAIGNS[name].build(Path(built))
        # In turn, so that each campaign has had its share when the time is up.
        outcomes = [
            run_one(name, Path(built), seed)
            for seed in seeds(given.minutes, given.seeds, given.draws)
            for name in names
        ]
    print(f"{outcomes.count(True)} passed, {outcomes.count(False)} failed", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
