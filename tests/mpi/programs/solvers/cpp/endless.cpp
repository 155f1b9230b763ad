// Simulations that run until they are cancelled or the job stops; then each rank writes the number of steps to
// ended-SIMULATION-RANK. Calls between that and the next simulation do nothing.
#include <chrono>
#include <fstream>
#include <mpidata.hpp>
#include <thread>

static void must(bool right, const char *what) {
    if (right) return;
    (void)std::fprintf(stderr, "wrong: %s\n", what);
    std::_Exit(3);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        int rank, ranks;
        MPI_Comm_rank(job.group(), &rank);
        MPI_Comm_size(job.group(), &ranks);
        const std::vector<std::array<float, 6>> rows(static_cast<std::size_t>(4 / ranks));
        for (auto &s : job.simulations()) {
            int step = 0;
            do {
                s.put_block("u", rows, {rank * 4 / ranks, 0});
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            } while (s.step(step) && ++step);
            const int status = s.try_step(step);
            must(status == MPIDATA_CANCELLED || status == MPIDATA_END, "the status of a step");
            must(s.try_put_block("u", rows, {rank * 4 / ranks, 0}) == status, "the status of a put");
            s.put_block("u", rows, {rank * 4 / ranks, 0});
            s.fail("it is over");
            if (status == MPIDATA_CANCELLED) std::ofstream("ended-" + std::to_string(s.id()) + "-" + std::to_string(rank)) << step;
            else std::printf("=> stopped\n");
        }
        job.finalize();
    }
    return MPI_Finalize();
}
