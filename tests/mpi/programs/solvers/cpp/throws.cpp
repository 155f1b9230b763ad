// Throws once, in step 2 of simulation 1: "outside" is caught outside the scope of the job, "nowhere" is not caught,
// "twice" is caught inside, printed and rethrown; "given up" is caught in the loop; "alone" throws in simulation 0.
#ifdef CARRIED
#include <mpidata_carried.h>
#endif
#include <mpidata.hpp>

static bool is_first_time() {
    std::FILE *file = std::fopen("thrown", "wx");
    if (file) (void)std::fclose(file);
    return file != nullptr;
}

static void solve(mpidata::job &job, const std::string &how) {
#ifdef CARRIED
    const int rank = 0, ranks = 1;
    (void)job;
#else
    int rank, ranks;
    MPI_Comm_rank(job.group(), &rank);
    MPI_Comm_size(job.group(), &ranks);
#endif
    for (auto &s : job.simulations()) {
        try {
            for (int step = 0; step < 4; step++) {
                const std::vector<std::array<float, 6>> rows(static_cast<std::size_t>(4 / ranks));
                s.put_block("u", rows, {rank * 4 / ranks, 0});
                const bool throws = s.id() == (how == "alone" ? 0 : 1) && step == 2;
                if (throws && (how == "given up" || (rank == ranks - 1 && is_first_time()))) throw std::runtime_error("as asked");
#ifndef CARRIED
                MPI_Barrier(job.group());
#endif
                if (!s.step(step)) break;
            }
        } catch (const std::runtime_error &e) {
            if (how != "given up") throw;
            s.fail(e.what());
        }
    }
}

static void run(const std::string &how) {
#ifdef CARRIED
    mpidata::job job;
#else
    mpidata::job job(MPI_COMM_WORLD);
#endif
    try {
        solve(job, how);
    } catch (const std::exception &e) {
        if (how == "twice") std::printf("inside: %s\n", e.what()); // flushed by the job's destructor
        throw;
    }
}

int main(int argc, char **argv) {
    const std::string how = argc > 1 ? argv[1] : "outside";
#ifndef CARRIED
    MPI_Init(&argc, &argv);
#endif
    if (how == "nowhere") run(how);
    else try {
        run(how);
    } catch (const std::exception &e) {
        std::printf("outside: %s\n", e.what());
    }
#ifndef CARRIED
    MPI_Finalize();
#endif
    return 0;
}
