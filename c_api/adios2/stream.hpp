// One run of a program that writes with ADIOS2 as one simulation of the job, with any version of ADIOS2.
#ifndef MPIDATA_ADIOS2_STREAM_HPP
#define MPIDATA_ADIOS2_STREAM_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpidata_carried.h"

namespace mpidata_adios2 {

// A block of a variable, as its Put describes it.
struct Block {
    std::string variable;
    mpidata_dtype dtype; // 0: none of mpidata's
    const void *values;
    bool is_value;              // one value of the whole program, which each rank may put
    bool has_start;             // in a global array; else it is this rank's part
    std::vector<std::size_t> start, count; // in C order
    std::vector<std::size_t> memory_start, memory_count; // where it lies in a larger array; empty: it is all of its memory
};

class Stream {
public:
    // Attach to the carrier, and ask for the simulation. rank: of those that write; from_first: gives all of them the number of the
    // first one. Throws std::runtime_error with the library's sentence, as all of these do.
    void open(int rank, std::function<double(double)> from_first);

    // The values are copied. Variables that are not fields of the job are dropped.
    void put(const Block &block);

    // Keep what is put until it is performed, as the program may still change the values. A single value is put at once, as ADIOS2's
    // own engines copy it at once, and its Python interface puts one that is gone afterwards.
    void defer(const Block &block);
    void perform();

    void begin_step() { is_in_step_ = true; }
    // Commit what was put. Ends the program if the job is stopping or the simulation is cancelled.
    void end_step();

    // End the simulation, with what was put since the last step as its last one. Within a step, as when an exception closes the
    // output, the try fails.
    void close();

    std::size_t steps() const { return steps_; }

private:
    double time_of_step();
    void put_strided(const char *field, const Block &block, const std::vector<std::int64_t> &shape, const std::int64_t *start);

    std::vector<Block> deferred_;
    std::function<double(double)> from_first_;
    std::string time_variable_;
    double time_ = 0;
    bool has_time_ = false, has_puts_ = false, is_open_ = false, is_in_step_ = false;
    int rank_ = 0;
    std::size_t steps_ = 0;
};

} // namespace mpidata_adios2

#endif
