// Like scattered.c, with "u" and "ends" in arrays that are not contiguous.
#include <mpidata.hpp>

static int rank, ranks;

// Returns this rank's rows of n (row * row mod ranks == rank), the last first.
static std::vector<int> rows_of(int n) {
    std::vector<int> rows;
    for (int row = n - 1; row >= 0; row--)
        if (row * row % ranks == rank) rows.push_back(row);
    return rows;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        MPI_Comm_rank(job.group(), &rank);
        MPI_Comm_size(job.group(), &ranks);
        std::vector<std::int64_t> ghosts;
        for (int i = 0; i < 20; i++) ghosts.push_back((i + rank) % 20);
        const mpidata::map with_ghosts(ghosts);
        const std::vector<int> rows = rows_of(9);
        mpidata::map first(rows), of_u(std::vector<int>{});
        of_u = std::move(first);
        for (auto &s : job.simulations())
            for (int step = 0; step < 6; step++) {
                const auto n = static_cast<std::int64_t>(rows.size());
                double u[2][9]; // component by component, all rows of each
                for (std::size_t i = 0; i < rows.size(); i++)
                    for (int c = 0; c < 2; c++) u[c][i] = static_cast<double>(1000 * s.id() + 100 * step + 2 * rows[i] + c);
                s.put_mapped("u", mpidata::array(&u[0][0], {n, 2}, {sizeof(double), sizeof u[0]}), of_u);
                std::vector<float> v;
                for (const int row : rows_of(10 + step)) v.push_back(static_cast<float>(100 * step + row));
                s.put_mapped("v", v, mpidata::map(rows_of(10 + step)));
                std::int32_t ends[10];
                for (int i = 0; i < 10; i++) ends[i] = i / 2 + 1;
                s.put_indices("ends", mpidata::array(ends, {5}, {8}), with_ghosts);
                s.put("w", std::array<double, 3>{});
                s.put_indices("own", std::array<std::int32_t, 3>{1, 2, 3});
                if (!s.step(step)) break;
            }
    }
    return MPI_Finalize();
}
