// Outside a job: errors are thrown with their code, and a job object that is used while an unrelated exception
// propagates ends as usual.
#include <mpidata_carried.h>
#include <mpidata.hpp>

#include <new>

static bool is_exhausted; /* memory */

void *operator new(std::size_t n) {
    void *memory = is_exhausted ? nullptr : std::malloc(n);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

struct Cleaner {
    mpidata::job &job;
    ~Cleaner() {
        for (auto &s : job.simulations()) std::printf("simulation %d\n", static_cast<int>(s.id()));
    }
};

struct LastWords {
    ~LastWords() {
        mpidata::job job;
        Cleaner cleaner{job};
    }
};

static void mistake(mpidata::simulation &s, const std::string &which) {
    const std::vector<double> row(6);
    const double box[2][3] = {};
    if (which == "start") s.put_block("u", box, {1});
    if (which == "strides") s.put("u", mpidata::array(row.data(), {2, 3}, {24}));
    if (which == "dimensions") s.put("u", mpidata::array(row.data(), mpidata::extents(std::vector<int>(7, 1))));
    if (which == "order") s.infer({{"x", row}}, {});
    if (which == "map") (void)mpidata::map(std::vector<long>{-1});
    if (which == "extent") s.put_mapped("u", mpidata::array(row.data(), {-1, 3}, {16, 8}), mpidata::map(std::vector<int>{0}));
    if (which == "huge") s.put_mapped("u", mpidata::array(row.data(), {1LL << 61}, {0}), mpidata::map(std::vector<int>{0}));
    if (which == "moved" || which == "moved indices") {
        mpidata::map rows(std::vector<int>{1, 0});
        const mpidata::map kept = std::move(rows);
        if (which == "moved") s.put_mapped("u", row, rows);
        s.put_indices("u", row, rows);
    }
    if (which == "memory") {
        is_exhausted = true;
        const int status = s.try_infer({{"x", row}}, {});
        is_exhausted = false;
        throw mpidata::error(status, mpidata_last_error());
    }
    if (which == "question") {
        const auto every_second = mpidata::array(row.data(), {3}, {16});
        s.infer({{"x", every_second}}, {});
    }
    if (which == "parameter") (void)s.param("alpha");
}

int main(int, char **argv) {
    const std::string which = argv[1];
    if (which == "unwinding") {
        try {
            LastWords last;
            throw 1;
        } catch (int) {
            std::printf("caught\n");
        }
        return 0;
    }
    mpidata::job job;
    for (auto &s : job.simulations()) {
        try {
            mistake(s, which);
        } catch (const mpidata::error &e) {
            std::printf("%d: %s\n", e.code(), e.what());
        }
        std::printf("%.2f %d\n", which == "parameter" ? 0 : s.param("beta"), s.try_put("u", 1.0));
    }
    job.finalize();
    try {
        job.finalize();
    } catch (const mpidata::error &e) {
        std::printf("%d: %s\n", e.code(), e.what());
    }
}
