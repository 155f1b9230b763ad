// Reads what published/trainer.py publishes up to version 3, and asks net:answer for y = 2 x and the sums of the rows.
#include <mpidata.hpp>

static void must(bool right, const char *what) {
    if (right) return;
    (void)std::fprintf(stderr, "wrong: %s\n", what);
    std::_Exit(3);
}

static bool same(double a, double b) { return !(a < b) && !(b < a); }

static void check_published(const mpidata::job &job, std::int64_t version) {
    const auto weight = job.published<double>("weight");
    must(bool(weight) == (version > 0), "something is published");
    if (!version) return;
    must(weight.rank() == 1 && weight.extent(0) == 100, "the shape of weight");
    for (int i = 0; i < 100; i++) must(same(weight.data()[i], i + static_cast<double>(version)), "weight");
    const auto bias = job.published<float>("bias");
    must(bias.rank() == 2 && bias.extent(0) == 2 && bias.extent(1) == 3, "the shape of bias");
    must(*job.published<std::int64_t>("step").data() == version, "step");
    try {
        (void)job.published<float>("weight");
        must(false, "another type is refused");
    } catch (const mpidata::error &e) {
        must(e.code() == MPIDATA_ERR_DTYPE, e.what());
    }
}

static void check_answers(mpidata::simulation &s) {
    float x[5][4], y[5][4];
    std::vector<double> sums(5), later(5);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++) x[i][j] = static_cast<float>(4 * i + j);
    std::int64_t version = -1;
    must(s.infer({{"x", x}}, {{"y", y}, {"sums", sums}}, &version), "an answer");
    must(version >= 0, "its version");
    mpidata::question first, moved;
    must(s.infer_begin(first, {{"x", x}}, {{"sums", later}}), "a question");
    moved = std::move(first);
    must(moved.wait() && first.wait(), "its answer");
    for (int i = 0; i < 5; i++)
        for (std::size_t j = 0; j < 4; j++) must(same(y[i][j], 2 * x[i][j]), "y");
    for (std::size_t i = 0; i < 5; i++) must(same(sums[i], 16 * static_cast<double>(i) + 6) && same(later[i], sums[i]), "a sum");
    mpidata::question dropped; // is answered all the same, into memory that is still valid
    must(s.infer_begin(dropped, {{"x", x}}, {{"sums", later}}), "a question");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        int rank;
        MPI_Comm_rank(job.group(), &rank);
        for (auto &s : job.simulations()) {
            must(s.param("alpha") >= 0 && s.param_text("mesh") == "coarse", "the parameters");
            std::int64_t version = 0;
            for (int step = 0; version < 3; step++) {
                if (!job.refresh(version)) break;
                check_published(job, version);
                check_answers(s);
                const std::array<std::array<float, 6>, 4> u = [&] {
                    std::array<std::array<float, 6>, 4> all{};
                    for (auto &row : all) row.fill(static_cast<float>(version));
                    return all;
                }();
                if (rank == 0) s.put("u", u);
                if (!s.step(step)) break;
            }
        }
    }
    return MPI_Finalize();
}
