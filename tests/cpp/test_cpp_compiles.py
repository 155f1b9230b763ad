"""Arguments that mpidata.hpp accepts compile without a warning; others fail, with a sentence that explains why."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INCLUDE = [ROOT / "c_api/include", ROOT / "tests/mpi/programs/solvers/cpp"]
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror", "-fsyntax-only"]
PRELUDE = """
#include <mpidata_carried.h>
#include <mpidata.hpp>
#include "made_up_views.hpp"
#include <list>
#include <memory>
#include <string>
#ifdef WITH_EIGEN
#include <Eigen/Dense>
#include <Eigen/SparseCore>
#endif

struct Expression { int rows() const; int cols() const; double operator()(int, int) const; };
struct Table { double *data() const; int size() const; std::array<int, 2> shape() const; };
struct OfStride : Span<double> { long stride(std::size_t) const; };
struct OfStrides : Span<double> { const long *strides() const; };
struct OfOneStride : Span<double> { long stride; };
struct OfShape : Span<double> { std::size_t shape(std::size_t) const; };
struct Blocked : Mdspan<double, 2> { static constexpr bool is_always_strided() { return false; } };
struct Scaled : Mdspan<double, 2> { using reference = double; };
struct NoStrides : Mdspan<double, 2> { void stride(std::size_t) const = delete; };
struct Tiled : KokkosView<double, 2> { struct array_layout { static constexpr int outer_pattern = 0; }; };
struct Atomic : KokkosView<double, 2> { struct Proxy {}; using reference_type = Proxy; };
struct OfUnknownSpace { using memory_space = DeviceSpace; double *data() const; static constexpr unsigned rank = 1;
                        int extent(int) const; int stride(int) const; };
struct Wide { int bits; };
template <> struct mpidata::dtype_of<Wide> : mpidata::dtype_is<MPIDATA_FLOAT16> {};

void piece(mpidata::job &job, mpidata::simulation &s);
void piece([[maybe_unused]] mpidata::job &job, mpidata::simulation &s) {
    std::vector<double> u(6);
    const std::vector<double> fixed(6);
#ifdef WITH_EIGEN
    Eigen::MatrixXd m(3, 4);
#endif
    [[maybe_unused]] float answer[6];
    %s
}
"""
NO_ARRAY = "mpidata: this is not an array whose elements lie in memory at fixed distances"
ON_DEVICE = "mpidata: this view is in the memory of a device"
NO_DTYPE = "mpidata: the elements of this array have no dtype of mpidata.h"
STRIDES = "mpidata: this view has strides, but not the members of a view that mpidata knows"
LENT = "mpidata: what is lent must stay where it is: give the array a name"
REFUSED = {
    's.put("u", std::list<double>(6));': NO_ARRAY,
    's.put("u", u.data());': NO_ARRAY,
    's.put("u", std::vector<bool>(6));': NO_ARRAY,
    's.put("u", Expression());': NO_ARRAY,
    's.put("u", Table());': NO_ARRAY,
    's.put("u", OfStride());': STRIDES,
    's.put("u", OfStrides());': STRIDES,
    's.put("u", OfOneStride());': STRIDES,
    's.put("u", OfShape());': NO_ARRAY,
    's.put("u", Blocked());': NO_ARRAY,
    's.put("u", Scaled());': NO_ARRAY,
    's.put("u", NoStrides());': NO_ARRAY,
    's.put("u", Tiled());': NO_ARRAY,
    's.put("u", Atomic());': NO_ARRAY,
    's.put("u", m + m);': NO_ARRAY,
    's.put("u", (m + m).transpose());': NO_ARRAY,
    's.put("u", m.reverse());': NO_ARRAY,
    's.put("u", Eigen::SparseMatrix<double>(3, 4));': NO_ARRAY,
    's.put("u", KokkosView<double, 2, DeviceSpace>());': ON_DEVICE,
    's.put("u", OfUnknownSpace());': ON_DEVICE,
    's.put_block("u", KokkosView<float, 2, DeviceSpace>(), {0, 0});': ON_DEVICE,
    's.put("u", std::vector<std::vector<double>>(6));': NO_DTYPE,
    's.put("u", std::vector<long double>(6));': NO_DTYPE,
    's.put("u", std::string("text"));': NO_DTYPE,
    's.put("u", std::vector<Wide>(6));': "mpidata: this mpidata::dtype_of is for elements of another size",
    'double deep[1][1][1][1][1][1][1]; s.put("u", deep);': "mpidata: a field has at most MPIDATA_MAX_NDIM dimensions",
    's.put_block("u", u, {1, 2, 3, 4, 5, 6, 7});': "mpidata: a field has at most MPIDATA_MAX_NDIM dimensions",
    's.put_block("u", u, std::vector<double>{1.5});': "mpidata: extents, starts and strides are integers",
    's.put_mapped("u", u, mpidata::map(std::vector<double>{0.9}));': "mpidata: the row numbers of a map are integers",
    's.put_mapped("u", u, mpidata::map(std::vector<bool>{true}));': "mpidata: the row numbers of a map are integers",
    's.iput("u", std::vector<double>(6));': LENT,
    's.iput("u", Span<double>{u.data(), 6});': LENT,
    's.infer({{"x", std::vector<double>(6)}}, {{"y", u}});': LENT,
    's.infer({{"x", u}}, {{"y", fixed}});': "mpidata: an answer is written to this array, which is const",
    "auto copy = s;": "",
    "auto copy = mpidata::job(std::move(job));": "",
    "for (auto copy : job.simulations()) copy.wait();": "",
}  # fmt: skip
TAKEN = [
    *('s.put("u", u);', 's.put("u", fixed);', 's.put("u", m.transpose());', 's.put("u", KokkosView<double, 2>());'),
    's.put("u", KokkosView<double, 2, ManagedSpace, ManagedSpace>());',
    's.put("u", KokkosView<double, 2, CudaSpace>());',
    's.put_block("u", u, std::vector<short>{1}); s.put_mapped("u", u, mpidata::map(std::list<unsigned>{0}));',
    *('s.iput("u", u);', 's.iput("u", mpidata::array(u.data(), {6}));', 's.put_block("u", u, u.size());'),
    's.infer({{"x", fixed}}, {{"y", u}, {"z", answer}});',
    *('s.put("u", u);\n s.step(0.5);', "for (auto &each : job.simulations()) each.wait();"),
]


def compile_piece(folder: Path, compiler: str, standard: str, piece: str) -> subprocess.CompletedProcess[str]:
    (folder / "piece.cpp").write_text(PRELUDE % piece)
    include = [f"-I{path}" for path in INCLUDE]
    if re.search(r"\bm\b|Eigen", piece):  # Eigen is slow to compile
        include += ["-DWITH_EIGEN", "-isystem", "/usr/include/eigen3"]
    command = [compiler, f"-std=c++{standard}", *STRICT, *include, "piece.cpp"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", ["17", "20"])
def test_accepted_arguments_compile_without_warnings(
    tmp_path: Path, require: Callable[[str], str], compiler: str, standard: str
) -> None:
    done = compile_piece(tmp_path, require(compiler), standard, "\n".join(f"{{ {piece} }}" for piece in TAKEN))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.full)])
@pytest.mark.parametrize("piece", REFUSED)
def test_refused_arguments_do_not_compile(
    tmp_path: Path, require: Callable[[str], str], compiler: str, piece: str
) -> None:
    done = compile_piece(tmp_path, require(compiler), "17", piece)
    errors = re.findall(r"error: (.*)", done.stderr)
    assert done.returncode == 1 and errors, done.stderr
    if REFUSED[piece]:  # only this sentence, and no further errors
        assert [REFUSED[piece] in error for error in errors] == [True], done.stderr
