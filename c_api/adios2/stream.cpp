#include "stream.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

// Of the library that is compiled into this one: the dtype of a field (0: outside a job, or there is no such field), the end of the
// job with a sentence, and the failure of a try.
extern "C" int mpidata_declared_dtype(const char *field);
extern "C" int mpidata_misuse(int status, const char *what, const char *advice);
extern "C" int mpidata_fail_try(const char *reason);

namespace mpidata_adios2 {

static const char OF_TIME[] = "Correct solvers.carried.time in the job file: it names the variable that is the time of a step.";

static int check(int status) {
    if (status == MPIDATA_SUCCESS || status == MPIDATA_END || status == MPIDATA_CANCELLED) return status;
    throw std::runtime_error(std::string("mpidata: ") + mpidata_last_error());
}

// The job no longer needs this simulation, which a program that only writes cannot learn. All ranks come here after the same step.
[[noreturn]] static void end_program() {
    (void)mpidata_finalize();
    (void)std::fflush(nullptr);
    std::_Exit(0);
}

void Stream::open(int rank, std::function<double(double)> from_first) {
    static bool was_open = false;
    std::int64_t simulation;
    if (was_open)
        throw std::runtime_error("mpidata: This program opens the engine of mpidata a second time. One run of it is one simulation, so keep "
                                 "the engine open, or name it in the io of one output only.");
    was_open = true;
    rank_ = rank;
    from_first_ = std::move(from_first);
    if (const char *name = std::getenv("MPIDATA_ADIOS2_TIME")) time_variable_ = name;
    check(mpidata_attach());
    if (check(mpidata_next(&simulation)) != MPIDATA_SUCCESS) end_program();
    is_open_ = true;
}

// The value of a scalar of any dtype that is a real number.
static bool read_number(const Block &block, double *number) {
    const auto read = [&](auto example) {
        std::memcpy(&example, block.values, sizeof example);
        *number = static_cast<double>(example);
        return true;
    };
    if (!block.count.empty() && !(block.count.size() == 1 && block.count[0] == 1)) return false;
    switch (block.dtype) {
    case MPIDATA_FLOAT32: return read(float{});
    case MPIDATA_FLOAT64: return read(double{});
    case MPIDATA_INT8: return read(std::int8_t{});
    case MPIDATA_INT16: return read(std::int16_t{});
    case MPIDATA_INT32: return read(std::int32_t{});
    case MPIDATA_INT64: return read(std::int64_t{});
    case MPIDATA_UINT8: return read(std::uint8_t{});
    case MPIDATA_UINT16: return read(std::uint16_t{});
    case MPIDATA_UINT32: return read(std::uint32_t{});
    case MPIDATA_UINT64: return read(std::uint64_t{});
    default: return false;
    }
}

// The name of a field: with _ for characters that field names cannot have.
static std::string field_of(std::string variable) {
    for (char &c : variable)
        if (!std::strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", c)) c = '_';
    return variable;
}

void Stream::put(const Block &block) {
    const std::string name = field_of(block.variable);
    const char *field = name.c_str();
    if (block.variable == time_variable_) {
        has_time_ = read_number(block, &time_);
        if (!has_time_) check(mpidata_misuse(MPIDATA_ERR_DTYPE, ("The variable '" + block.variable + "' is not a single number").c_str(), OF_TIME));
    }
    if (!mpidata_declared_dtype(field)) return;
    has_puts_ = true;
    if (block.dtype == mpidata_dtype{})
        check(mpidata_misuse(MPIDATA_ERR_DTYPE, ("The variable '" + block.variable + "' is a text or a long double").c_str(),
                             "A field has numbers of up to 16 bytes: remove it from the job file, or write another type."));
    if (block.is_value && rank_ != 0) return;
    const std::vector<std::int64_t> start(block.start.begin(), block.start.end()), shape(block.count.begin(), block.count.end());
    const int ndim = static_cast<int>(shape.size());
    if (!block.memory_count.empty()) put_strided(field, block, shape, block.has_start ? start.data() : nullptr);
    else if (block.has_start) check(mpidata_put_block(field, block.values, block.dtype, ndim, shape.data(), start.data()));
    else check(mpidata_put(field, block.values, block.dtype, ndim, shape.data()));
}

static std::size_t bytes_of(mpidata_dtype dtype) {
    switch (dtype) {
    case MPIDATA_INT8: case MPIDATA_UINT8: case MPIDATA_BOOL: return 1;
    case MPIDATA_INT16: case MPIDATA_UINT16: case MPIDATA_FLOAT16: case MPIDATA_BFLOAT16: return 2;
    case MPIDATA_INT32: case MPIDATA_UINT32: case MPIDATA_FLOAT32: return 4;
    case MPIDATA_COMPLEX128: return 16;
    default: return 8;
    }
}

void Stream::put_strided(const char *field, const Block &block, const std::vector<std::int64_t> &shape, const std::int64_t *start) {
    std::vector<std::int64_t> strides(shape.size());
    auto stride = static_cast<std::int64_t>(bytes_of(block.dtype));
    const char *first = static_cast<const char *>(block.values);
    for (std::size_t d = shape.size(); d-- > 0;) {
        strides[d] = stride;
        if (!block.memory_start.empty()) first += stride * static_cast<std::int64_t>(block.memory_start[d]);
        stride *= static_cast<std::int64_t>(block.memory_count[d]);
    }
    check(mpidata_put_strided(field, first, block.dtype, static_cast<int>(shape.size()), shape.data(), start, strides.data()));
}

void Stream::defer(const Block &block) {
    for (const std::size_t extent : block.count)
        if (extent != 1) {
            deferred_.push_back(block);
            return;
        }
    put(block);
}

void Stream::perform() {
    for (const Block &block : deferred_) put(block);
    deferred_.clear();
}

double Stream::time_of_step() {
    if (time_variable_.empty()) return static_cast<double>(steps_);
    const double time = from_first_(has_time_ ? time_ : std::numeric_limits<double>::quiet_NaN());
    if (std::isnan(time) && from_first_(has_time_) == 0) check(mpidata_misuse(MPIDATA_ERR_FIELD, ("The variable '" + time_variable_ + "' was not put").c_str(), OF_TIME));
    return time;
}

void Stream::end_step() {
    perform();
    is_in_step_ = false;
    const int status = check(mpidata_step(time_of_step()));
    steps_++;
    has_time_ = has_puts_ = false;
    if (status != MPIDATA_SUCCESS) end_program();
}

void Stream::close() {
    if (!is_open_) return;
    is_open_ = false;
    if (is_in_step_) {
        const std::string reason = "Close of its ADIOS2 output came within step " + std::to_string(steps_) + ", before EndStep";
        check(mpidata_fail_try(reason.c_str()));
    } else {
        perform();
        if (has_puts_) end_step();
    }
    check(mpidata_finalize());
}

} // namespace mpidata_adios2
