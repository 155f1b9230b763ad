"""Whether a program is a launcher, which would start processes of its own: only mpidata starts trainers."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from mpidata.config.base import Location, Problem

__all__ = ["check_no_launcher", "launcher_of"]

_PROGRAMS = {
    "torchrun", "deepspeed", "horovodrun", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "jsrun",
    "aprun", "ibrun",
}  # fmt: skip
_WITH_COMMAND = {"accelerate": "launch", "fabric": "run", "lightning": "run", "flux": "run"}
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate launch",
    "accelerate.commands.accelerate_cli": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
}
# These run the command that follows their own options.
_BEFORE = {"env", "exec", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "time", "timeout"}
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_SEPARATORS = {";", "&&", "||", "|", "&", "do", "then", "{", "("}
_PROCESSES = re.compile(r"(?:--nproc[-_]per[-_]node|--num[-_]processes|--ntasks|--num[-_]gpus|-np|-n)(?:=?(\d+))?")


def check_no_launcher(location: Location, program: object) -> Iterator[Problem]:
    """Refuse a launcher as a trainer's program."""
    if not isinstance(program, list) or not all(isinstance(word, str) for word in program):
        return  # missing, or refused already
    found = launcher_of(program)
    if found is None:
        return
    name, rest = found
    key = ".".join(map(str, location))
    script = next((i for i, word in enumerate(rest) if word.endswith(".py")), None)
    instead = ["python", *(rest[script:] if script is not None else ["train.py"])]
    ranks = f"'trainers.ranks: {count}' and " if (count := _processes(rest[:script])) else ""
    said = f"'{key}' is {name}, which starts processes of its own, but mpidata starts the trainers"
    fix = f"Instead of {name}, write {ranks}'program: [{', '.join(instead)}]'"
    yield location, f"{said}. {fix}: each has RANK, WORLD_SIZE and LOCAL_RANK in its environment, as from torchrun."


def launcher_of(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """Find the launcher that a command runs: its usual name and the words after it; None if it runs no launcher.

    Skips programs such as `env` and `timeout`, and looks into the text of `sh -c`.
    """
    wrapped = False
    for number, word in enumerate(command):
        name, rest = os.path.basename(word) if os.path.isabs(word) else word, command[number + 1 :]
        if name in _PROGRAMS:
            return name, rest
        if name in _WITH_COMMAND and _WITH_COMMAND[name] in rest[:1]:
            return f"{name} {rest[0]}", rest[1:]
        if name.startswith("python"):
            module = rest.index("-m") + 1 if "-m" in rest else len(rest)
            known = _MODULES.get(rest[module]) if module < len(rest) else None
            return None if known is None else (known, rest[module + 1 :])
        if name in _SHELLS and len(rest) >= 2 and rest[0].startswith("-") and rest[0].endswith("c"):
            return _launcher_in_text(rest[1])
        wrapped = wrapped or name in _BEFORE
        if not wrapped and "=" not in word:
            return None  # further words are its arguments
    return None


def _launcher_in_text(text: str) -> tuple[str, Sequence[str]] | None:
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return None  # the shell itself reports the error
    begins = [0, *(i + 1 for i, word in enumerate(words) if word in _SEPARATORS)]
    for begin in begins:
        end = next((i for i in range(begin, len(words)) if words[i] in _SEPARATORS), len(words))
        if begin < end and (found := launcher_of(words[begin:end])):
            return found
    return None


def _processes(options: Sequence[str]) -> str | None:
    """Return the number of processes that a launcher is to start."""
    for number, word in enumerate(options):
        if match := _PROCESSES.fullmatch(word):
            following = options[number + 1] if number + 1 < len(options) else ""
            return match[1] or (following if following.isdigit() else None)
    return None
