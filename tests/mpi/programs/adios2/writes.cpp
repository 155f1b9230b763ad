// A program that writes with ADIOS2 and is unaware of mpidata. Arguments: the XML file, then how: "plain", "dies" (rank
// RANKS - 1 kills itself in step 2 of simulation 1, once), "reads", "spans", "no steps" (a single one, ended by Close), "no time",
// "endless".
// Variables are functions of simulation, step and index; trainer.py checks all of them.
#include <adios2.h>

#include <complex>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>
#if ADIOS2_USE_MPI
#include <mpi.h>
#endif

using std::size_t;
using adios2::Dims;

static int rank = 0, ranks = 1;
static const size_t ROWS = 11, COLUMNS = 5;

static size_t first_row(int of) { return ROWS * static_cast<size_t>(of * of) / static_cast<size_t>(ranks * ranks); } // uneven

static bool is_first_time() {
    std::FILE *file = std::fopen(std::getenv("MARKER"), "wx");
    if (file) (void)std::fclose(file);
    return file != nullptr;
}

static void write(adios2::IO io, const std::string &how) {
    const char *number = std::getenv("MPIDATA_SIMULATION");
    const int simulation = number ? std::atoi(number) : 0;
    const size_t begin = first_row(rank), end = first_row(rank + 1), n = end - begin;
    auto u = io.DefineVariable<double>("fields/u", {ROWS, COLUMNS}, {begin, 0}, {n, COLUMNS});
    auto halves = io.DefineVariable<int>("halves", {ROWS, 4}, {begin, 0}, {n, 2});
    auto pairs = io.DefineVariable<std::complex<float>>("pairs", {ROWS}, {begin}, {n});
    auto part = io.DefineVariable<float>("part", {}, {}, {n + 1, 2});
    auto each = io.DefineVariable<std::int64_t>("each", {adios2::LocalValueDim});
    auto energy = io.DefineVariable<float>("energy");
    auto t = io.DefineVariable<double>("t");
    auto mesh = io.DefineVariable<double>("mesh", {ROWS}, {begin}, {n});
    auto note = io.DefineVariable<std::string>("note");
    auto unwanted = io.DefineVariable<double>("unwanted", {ROWS}, {begin}, {n});
#ifndef ADIOS2_HAS_NO_MEMORY_SELECTION
    auto inner = io.DefineVariable<double>("inner", {ROWS, COLUMNS}, {begin, 0}, {n, COLUMNS});
    inner.SetMemorySelection({{1, 2}, {n + 2, COLUMNS + 3}});
#endif
    if (how == "reads") {
        (void)io.Open("in.bp", adios2::Mode::Read);
        return;
    }
    adios2::Engine engine = io.Open("out.bp", adios2::Mode::Write);
    const int steps = how == "no steps" ? 1 : how == "endless" ? 1 << 30 : 3 + simulation % 3;
    for (int step = 0; step < steps; step++) {
        const double base = 10000.0 * simulation + 1000 * step;
        std::vector<double> of_u(n * COLUMNS, -1), of_mesh(n), with_ghosts((n + 2) * (COLUMNS + 3), -1);
        std::vector<int> left(n * 2), right(n * 2);
        std::vector<std::complex<float>> of_pairs(n);
        std::vector<float> of_part((n + 1) * 2);
        if (how != "no steps") engine.BeginStep();
        if (step == 0) {
            for (size_t i = 0; i < n; i++) of_mesh[i] = 10000.0 * simulation + static_cast<double>(begin + i);
            engine.Put(mesh, of_mesh.data());
        }
        if (how == "spans") {
            (void)engine.Put(u);
            return;
        }
        engine.Put(u, of_u.data()); // deferred: written as it is when the step ends
        for (size_t i = 0; i < n; i++) {
            const auto row = static_cast<double>(begin + i);
            for (size_t j = 0; j < COLUMNS; j++) of_u[i * COLUMNS + j] = base + 10 * row + static_cast<double>(j);
            for (size_t j = 0; j < COLUMNS; j++) with_ghosts[(i + 1) * (COLUMNS + 3) + j + 2] = of_u[i * COLUMNS + j];
            for (size_t j = 0; j < 2; j++) {
                left[i * 2 + j] = static_cast<int>(base + 10 * row + static_cast<double>(j));
                right[i * 2 + j] = left[i * 2 + j] + 2;
            }
            of_pairs[i] = {static_cast<float>(base + row), static_cast<float>(-row)};
        }
        for (size_t i = 0; i < of_part.size(); i++) of_part[i] = static_cast<float>(base + 100 * rank) + static_cast<float>(i);
        halves.SetSelection({{begin, 0}, {n, 2}});
        engine.Put(halves, left.data(), adios2::Mode::Sync);
        halves.SetSelection({{begin, 2}, {n, 2}});
        engine.Put(halves, right.data());
        engine.Put(pairs, of_pairs.data());
        engine.PerformPuts();
        engine.Put(part, of_part.data());
        engine.Put(each, std::int64_t{100} * rank + step);
        engine.Put(energy, static_cast<float>(base)); // by all ranks, as ADIOS2 allows
        if (rank == 0 && how != "no time") engine.Put(t, 0.25 * step);
        engine.Put(note, std::string("written"));
        engine.Put(unwanted, of_u.data());
#ifndef ADIOS2_HAS_NO_MEMORY_SELECTION
        engine.Put(inner, with_ghosts.data());
#endif
        if (how == "dies" && rank == ranks - 1 && simulation == 1 && step == 2 && is_first_time()) std::raise(SIGKILL);
        if (how != "no steps") engine.EndStep();
        else engine.PerformPuts();
        if (how == "no steps") engine.Close();
    }
    if (how != "no steps") engine.Close();
}

int main(int argc, char **argv) {
    const std::string xml = argv[1], how = argc > 2 ? argv[2] : "plain";
    int status = 0;
#if ADIOS2_USE_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    try {
#if ADIOS2_USE_MPI
        adios2::ADIOS adios(xml, MPI_COMM_WORLD);
#else
        adios2::ADIOS adios(xml);
#endif
        write(adios.DeclareIO("output"), how);
    } catch (const std::exception &e) {
        (void)std::fprintf(stderr, "threw: %s\n", e.what());
        status = 1;
    }
#if ADIOS2_USE_MPI
    if (status) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
#endif
    return status;
}
