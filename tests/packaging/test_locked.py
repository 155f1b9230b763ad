"""A function that needs the trainer's lock has this in its name, asserts it, and is called only with the lock held."""

import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "c_api" / "src"


def functions() -> dict[str, str]:
    """Return the body of each function of the library, without the wrappers of pthread in base/lock.h."""
    found = {}
    for path in SOURCES.rglob("*.c"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for name, body in re.findall(r"^\w[^\n;{}#]*?(\w+)\([^;{}]*\) \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE):
            found[f"{path.relative_to(SOURCES)}: {name}"] = body
    return found


def test_functions_that_need_the_lock_assert_it() -> None:
    needing = {name: body for name, body in functions().items() if name.endswith("_locked")}
    assert len(needing) > 30
    assert [name for name, body in needing.items() if not body.startswith("    MPIDATA_LOCKED(")] == []


def test_functions_that_need_the_lock_are_called_with_it() -> None:
    calling = {name: body for name, body in functions().items() if re.search(r"_locked\(", body)}
    assert len(calling) > 40
    held = {name for name, body in calling.items() if name.endswith("_locked") or "mpidata_lock_take(" in body}
    assert sorted(calling.keys() - held) == []


def test_only_the_lock_uses_the_mutex() -> None:
    text = "".join(path.read_text() for path in SOURCES.rglob("*.[ch]") if path.name != "lock.h")
    assert "pthread_mutex" not in text and "pthread_cond_timedwait" not in text
