"""Each C test in tests/c runs as a test here; the build fails on warnings."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "tests" / "c").glob("test_*.c") if path.stem != "test_device")
NAMES += ["test_device_cuda_1", "test_device_amdhip64_5", "test_device_amdhip64_6"]  # with each driver


def build(require: Callable[[str], str], folder: Path, *options: str) -> Path:
    """Configure and build library and tests in the folder, with the least optimization that shows all warnings."""
    cmake, mpicc = require("cmake"), require("mpicc")
    options = ("-DCMAKE_C_FLAGS_RELEASE=-O1", *options)
    configure = [cmake, "-S", ROOT / "c_api", "-B", folder, f"-DCMAKE_C_COMPILER={mpicc}", "-DMPIDATA_TESTS=ON"]
    for command in ([*configure, "-DMPIDATA_WERROR=ON", *options], [cmake, "--build", folder, "--parallel", "2"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
    return folder


def run(ctest: str, folder: Path, name: str) -> None:
    """Run one test, which must succeed."""
    command = [ctest, "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-R", f"^{name}$"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="session")
def release(require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(require, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session", params=["address,undefined", "thread"])
def sanitized(
    request: pytest.FixtureRequest, require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return build(require, tmp_path_factory.mktemp("sanitized"), f"-DMPIDATA_SANITIZE={request.param}")


@pytest.mark.parametrize("name", NAMES)
def test_c(release: Path, require: Callable[[str], str], name: str) -> None:
    run(require("ctest"), release, name)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_c_sanitized(
    sanitized: Path, require: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # MPI libraries leak by design.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    monkeypatch.setenv("UCX_MEM_EVENTS", "no")  # its hooks call the sanitizer from a thread that is not set up
    run(require("ctest"), sanitized, name)
