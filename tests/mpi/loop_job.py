"""The job file and the programs of a random job of the loop campaign."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import torch
from carried_campaign import COMPILERS
from jobs import MPIFH, PROGRAMS, JobFolder, config, environment, mpicc, python
from loop_draw import Draw

ELEMENTS = 100


def build(folder: Path) -> None:
    """Build the solvers as a user does, except those whose MPI or compiler is missing."""
    warnings, source = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"], PROGRAMS / "solvers/loop.c"
    few, fortran = MPIFH, PROGRAMS / "solvers/fortran/loop.F90"
    mpich, gfortran = shutil.which(COMPILERS["mpich"]), shutil.which("gfortran")
    commands: list[list[object]] = [
        [mpicc(), *warnings, source, "-o", folder / "loop-c", *config("--cflags", "--libs")],
        ["cc", *warnings, "-DCARRIED", source, "-o", folder / "loop-carried", *config("--carried")],
    ]
    if mpich:
        more = ["-DCARRIED", "-DWITH_MPI"]
        commands += [[mpich, *warnings, *more, source, "-o", folder / "loop-ranks", *config("--carried")]]
    if gfortran:
        start = [gfortran, "-O2", "-g", "-Wall", fortran, "-o"]
        commands += [
            [mpicc(), "-c", few / "mpifh.c", "-o", folder / "mpifh.o"],
            [*start, folder / "loop-fortran", f"-I{few}", folder / "mpifh.o", *config("--fflags"), *config("--flibs")],
            [*start, folder / "loop-carried-fortran", "-DCARRIED", *config("--fcarried")],
        ]
    for command in commands:
        done = subprocess.run(list(map(str, command)), env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def solvers_of(folder: Path, built: Path, one: Draw) -> dict[str, Any]:
    """Return the keys of `solvers` that run the simulations."""
    numbers = [one.steps, int(one.step_s * 1e6), one.seed, one.refreshes, ELEMENTS]
    numbers += [one.asks * bool(one.inference), one.asked_rows, one.first, int(one.ragged)]
    words = list(map(str, numbers))
    if one.kind == "function":
        return {"function": "loop.function:by_rows"}
    if one.kind == "program":
        return {"program": python("loop/program.py")}
    if one.kind in ("c", "fortran"):
        return {"program": [str(built / f"loop-{one.kind}"), *words]}
    if one.kind == "carried python":
        return {"program": python("loop/program.py"), "carried": {"ranks": 1}}
    if one.kind in ("carried", "carried fortran"):
        program = str(built / f"loop-{one.kind.replace(' ', '-')}")
        return {"program": [program, *words], "carried": {"ranks": 1, "launcher": "none"}}
    if one.kind == "carried ranks":
        launcher = ["mpirun.mpich", "-n", "{ranks}", "-hosts", "{hosts}"]
        return {
            "program": [str(built / "loop-ranks"), *words],
            "carried": {"ranks": one.ranks, "launcher": launcher},
        }
    (folder / "case").mkdir()
    writes = python("loop/writes.py", "{alpha:.17g}", "{simulation}", one.steps, one.step_s)
    return {
        "program": writes, "carried": {}, "case": {"folder": "case"}, "output": {"files": "u_*.npy"},
    }  # fmt: skip


def options_of(one: Draw) -> dict[str, Any]:
    """Return the choices that the Python programs receive."""
    names = ("seed", "simulations", "validation", "cancels", "most", "publishes", "batch", "pause_s", "steps", "step_s")
    names += ("refreshes", "rows", "ragged", "ranks", "asked_rows", "call_s", "first", "trainers")
    # All deaths come long before the last batch, and before all remaining samples are in buffers or on their way there.
    to_come = one.simulations // 2 * one.steps - one.trainers * one.capacity - 32  # the others may be cancelled
    spacing = max(1, min(8, to_come // (12 * one.batch * one.trainers)))
    more = {"elements": ELEMENTS, "asks": one.asks * bool(one.inference)}
    return {name: getattr(one, name) for name in names} | more | {"deaths": len(one.deaths), "spacing": spacing}


def write_job(folder: JobFolder, built: Path, one: Draw) -> None:
    """Write the job file."""
    options = options_of(one)
    (folder.path / "kills").touch()
    (folder.path / "options.json").write_text(json.dumps(options))
    folder.variables["LOOP_OPTIONS"] = str(folder.path / "options.json")
    folder.write_job({"name": "job", "seed": one.seed, **_ranks(folder.path, built, one, options), **_data(one)})


def _ranks(folder: Path, built: Path, one: Draw, options: dict[str, Any]) -> dict[str, Any]:
    program = python("loop/trainer.py", json.dumps(options))
    trainers = {"ranks": one.trainers}
    if one.elastic:
        step = {"batch_size": one.batch, "global_batch_size": None, "every": 1, "pause_s": one.pause_s}
        others = {"validate": 0, "after": 0, "kills": {}, "kills_again": {}, "joins": 0, "retires": 0, "waits_s": 0}
        program = python("trainers/elastic/stream.py", json.dumps({**step, **others, "loop": options}))
        trainers |= {"elastic": True, "spares": one.trainer_spares}
    sections: dict[str, Any] = {
        "trainers": {**trainers, "program": program},
        "solvers": {
            "groups": one.groups,
            "ranks_per_group": one.width,
            "start": one.start,
            "lifetime": one.lifetime,
            "retries": 20,
            "timeout_s": 4,
            "start_timeout_s": 10,
            **({"spares": one.spares} if one.start == "split" else {}),
            **solvers_of(folder, built, one),
        },
    }
    if one.inference:
        # The weights that published/values.py has for version 0.
        named = {"weight": torch.arange(ELEMENTS).double(), "bias": torch.arange(6).float().reshape(2, 3)}
        torch.save(named | {"step": torch.tensor(0), "none": torch.empty(0, 3).short()}, folder / "net.pt")
        sections["inference"] = {
            **{"function": "loop.net:answer", "ranks": one.inference, "spares": one.inference_spares},
            **{"batch": one.asked_batch, "wait_ms": one.wait_ms, "timeout_s": 4, "start_timeout_s": 60},
            **({} if one.first else {"weights": "net.pt"}),
        }
    return sections


def _data(one: Draw) -> dict[str, Any]:
    sampler = f"loop.knowing:{'Stateful' if one.stateful else 'Stateless'}"
    learner = {"sampler": sampler, "learner_rank": True, "learner_spares": one.learner_spares} if one.learner else {}
    sections: dict[str, Any] = {
        "parameters": {"count": one.simulations, "space": {"alpha": [0.0, 1.0]}, **learner},
        "fields": {"u": {"dtype": "float32", "shape": [12, 6]}},
        "buffer": {"policy": one.policy, "capacity": one.capacity, "tail": one.tail},
    }
    if one.rows:
        sections["fields"]["rows"] = {"dtype": "float32", "shape": [8]}
    if one.ragged:
        sections["fields"]["p"] = {"dtype": "float32", "shape": ["nodes", 2]}
        sections["lengths"] = {"nodes": {"at_most": 12}}
    if one.validation:
        sections["validation"] = {"count": one.validation}
    if one.window > 1:
        sections["samples"] = {"window": one.window}
    if one.record:
        sections["record"] = {"every": one.record}
    if one.journal:
        sections["journal"] = True
    return sections
