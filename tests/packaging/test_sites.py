"""Each recipe for sites in packaging/ works."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from installing import ROOT, copy_sources, run

import mpidata

PACKAGING = ROOT / "packaging"
CERTIFICATES = Path(os.environ.get("PIP_CERT", "/etc/ssl/certs/ca-certificates.crt"))  # this machine's
LMOD = "/usr/share/lmod/lmod/init/bash"
pytestmark = [pytest.mark.full, pytest.mark.timeout(1500)]


def bash(script: str, **variables: str) -> str:
    """Run a bash script in which `module` is defined; return its output."""
    done = subprocess.run(
        ["bash", "-euc", f"set +u; . {LMOD}; set -u\n{script}"],
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install EasyBuild, ReFrame and Lmod; return the folder of the commands."""
    run("sh", ROOT / "tools/system-packages.sh", f"{LMOD}=lmod", "cmake=cmake")
    folder = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/pip", "install", "-q", "easybuild>=5.4,<6", "reframe-hpc>=4.10,<5")
    return folder / "bin"


def test_easybuild_module_works_and_python_installs_on_top(
    tmp_path: Path, tools: Path, require: Callable[[str], str]
) -> None:
    sources = copy_sources(tmp_path / "sources")
    for name in ("MANIFEST.in", "README.md", "constraints.txt"):
        shutil.copy(ROOT / name, sources)
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, tmp_path, cwd=sources)
    mpicc = Path(require("mpicc"))
    variables = {
        "PATH": os.pathsep.join(map(str, (tools, mpicc.parent, "/usr/bin", "/bin"))),
        "EASYBUILD_PREFIX": str(tmp_path / "prefix"),
        "EASYBUILD_SOURCEPATH": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    as_root = "--allow-use-as-root-and-accept-consequences" if os.getuid() == 0 else ""
    easyconfig = PACKAGING / "easybuild" / f"mpidata-{mpidata.__version__}.eb"
    said = bash(f"eb {as_root} {easyconfig} --parallel 2", **variables)
    assert f"[SUCCESS] mpidata/{mpidata.__version__}" in said
    load = f"module use {tmp_path}/prefix/modules/all; module load mpidata"
    source = tmp_path / "solver.c"
    source.write_text("#include <mpidata.h>\nint main(void) { return mpidata_strerror(0) == 0; }\n")
    bash(
        f"{load}; mpicc {source} -o {tmp_path}/solver $(pkg-config --cflags --libs mpidata); {tmp_path}/solver",
        **variables,
    )
    python = tmp_path / "python"
    run(sys.executable, "-m", "venv", "--system-site-packages", python)
    install = f"{python}/bin/pip install -q --no-deps --no-build-isolation {sources}"
    prefix = f"{load}; {install}; {python}/bin/mpidata config --prefix"
    packages = [folder for folder in sys.path if folder.endswith("site-packages")]
    said = bash(prefix, **variables, PYTHONPATH=os.pathsep.join(packages))
    assert said.splitlines()[-1].startswith(f"{tmp_path}/prefix/software/mpidata/"), said


def test_modulefile_sets_the_documented_variables(tmp_path: Path, tools: Path) -> None:
    folder = tmp_path / "mpidata"
    folder.mkdir()
    shutil.copy(PACKAGING / "modulefile" / f"{mpidata.__version__}.lua", folder)
    said = bash(f"module use {tmp_path}; module load mpidata; env")
    root = f"/opt/mpidata/{mpidata.__version__}"
    for line in (
        f"CMAKE_PREFIX_PATH={root}",
        f"PKG_CONFIG_PATH={root}/lib/pkgconfig",
        f"MPIDATA_LIBRARY={root}/lib/libmpidata.so",
    ):
        assert re.search(rf"^{line}(:|$)", said, re.MULTILINE), said


def test_reframe_runs_the_check(tmp_path: Path, tools: Path) -> None:
    check = PACKAGING / "reframe" / "mpidata_check.py"
    path = os.pathsep.join([str(Path(sys.prefix) / "bin"), str(tools), os.environ["PATH"]])
    said = bash(f"reframe --prefix {tmp_path} -c {check} -r --performance-report", PATH=path)
    assert "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)" in said
    assert re.search(r"P: seconds_of_a_job: [\d.]+ s", said), said


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_dockerfile_lines_run_in_a_chroot(suite: str) -> None:
    """The lines run in a chroot of its Debian and of the next one, because images need more rights than a test has."""
    image = ROOT / "build" / "chroots" / suite
    run("sh", ROOT / "tools/make-chroot.sh", suite, image)
    shutil.rmtree(image / "opt/mpidata", ignore_errors=True)
    in_chroot(
        image,
        "root",
        "/root",
        ["sh", "-c", "! id user 2>&1 || userdel --remove user"],
        {"PATH": "/usr/sbin:/usr/bin:/bin"},
    )
    text = (PACKAGING / "Dockerfile").read_text().replace("\\\n", "")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    variables = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "http", "HTTP"))}
    variables |= {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    user, home = "root", "/root"
    for command, rest in lines:
        if command == "ENV":
            name, _, value = rest.partition("=")
            variables[name] = f"{value}:/usr/sbin:/sbin" if name == "PATH" else value
        elif command == "COPY":
            target = image / rest.split()[1].lstrip("/")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            copy_sources(target)
            for name in ("README.md", "constraints.txt", "MANIFEST.in"):
                shutil.copy(ROOT / name, target)
        elif command == "USER":
            user = rest
        elif command == "WORKDIR":
            home = rest
        elif command in ("RUN", "CMD"):
            words = ["sh", "-euc", rest] if command == "RUN" else json.loads(rest)
            said = in_chroot(image, user, home, words, variables)
    assert re.search(r"job in Python +ok", said) and re.search(r"job in C +ok", said), said


def in_chroot(root: Path, user: str, home: str, words: list[str], variables: dict[str, str]) -> str:
    """Run a command in a mount namespace of its own, whose /proc, /dev and network are the machine's."""
    inner = (
        f"cd {home}; exec env -i HOME={home} {shlex.join(f'{k}={v}' for k, v in variables.items())} {shlex.join(words)}"
    )
    script = (
        f"mount -t proc proc {root}/proc; mount --rbind /dev {root}/dev; cp /etc/resolv.conf {root}/etc/\n"
        f"mkdir -p {root}{CERTIFICATES.parent}; cp {CERTIFICATES} {root}{CERTIFICATES}\n"
        f"exec chroot --userspec={user} {root} sh -euc {shlex.quote(inner)}"
    )
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout
    return done.stdout
