// Puts fields of all dtypes, as dtype_values.py defines them: arrays of the declared dtype and of convertible ones.
#include <cstring>
#include <limits>
#include <mpidata.hpp>

struct Half {
    std::uint16_t bits;
};
struct Brain {
    std::uint16_t bits;
};
template <> struct mpidata::dtype_of<Half> : mpidata::dtype_is<MPIDATA_FLOAT16> {};
template <> struct mpidata::dtype_of<Brain> : mpidata::dtype_is<MPIDATA_BFLOAT16> {};
#ifdef __FLT16_MANT_DIG__
using half = _Float16;
#else
using half = Half;
#endif
#ifdef __BFLT16_MANT_DIG__
using brain = __bf16;
#else
using brain = Brain;
#endif

constexpr int N = 6;

template <class T>
static void put(mpidata::simulation &s, const char *field, const std::array<T, N> &values, int step) {
    if (step % 2 == 0) return s.put(field, values);
    s.iput(field, values);
    s.wait_for(values); // returns at once, as the sample is not committed: the array stays lent
}

template <class T>
static void put_integers(mpidata::simulation &s, const char *field, int step) {
    static std::array<T, N> values;
    const int sign = std::numeric_limits<T>::is_signed ? -1 : 1;
    for (int i = 0; i < N; i++) values[static_cast<std::size_t>(i)] = static_cast<T>(sign * (8 * step + i));
    values[N - 1] = std::numeric_limits<T>::max();
    put(s, field, values, step);
}

static void put_others(mpidata::simulation &s, int step) {
    static std::array<bool, N> truths;
    static std::array<half, N> halves;
    static std::array<brain, N> brains;
    static std::array<float, N> singles;
    static std::array<double, N> doubles;
    static std::array<std::complex<float>, N> single_pairs;
    static std::array<std::complex<double>, N> double_pairs;
    for (std::size_t i = 0; i < N; i++) {
        const int n = 8 * step + static_cast<int>(i);
        const auto bits = static_cast<std::uint16_t>(0x3c00 + n);
        truths[i] = n % 3 == 0;
        std::memcpy(&halves[i], &bits, sizeof bits);
        std::memcpy(&brains[i], &bits, sizeof bits);
        doubles[i] = (n + 1) / 3.0;
        double_pairs[i] = {doubles[i], static_cast<double>(n)};
        if (i == 4) doubles[i] = std::numeric_limits<double>::quiet_NaN();
        if (i == 5) doubles[i] = 1e300;
        if (i == 5) double_pairs[i] = {1e300, 1.0};
        singles[i] = i == 5 ? 3e38F : static_cast<float>(doubles[i]);
        single_pairs[i] = i == 5 ? std::complex<float>{3e38F, 1.0F} : static_cast<std::complex<float>>(double_pairs[i]);
    }
    put(s, "bool", truths, step);
    put(s, "float16", halves, step);
    put(s, "bfloat16", brains, step);
    put(s, "float32", singles, step);
    put(s, "float64", doubles, step);
    put(s, "complex64", single_pairs, step);
    put(s, "complex128", double_pairs, step);
    put(s, "float32_of_float64", doubles, step);
    put(s, "float16_of_float64", doubles, step);
    put(s, "bfloat16_of_float64", doubles, step);
    put(s, "float16_of_float32", singles, step);
    put(s, "bfloat16_of_float32", singles, step);
    put(s, "complex64_of_complex128", double_pairs, step);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    {
        mpidata::job job(MPI_COMM_WORLD);
        for (auto &s : job.simulations())
            for (int step = 0; step < 3; step++) {
                put_integers<signed char>(s, "int8", step);
                put_integers<short>(s, "int16", step);
                put_integers<int>(s, "int32", step);
                step % 2 ? put_integers<long>(s, "int64", step) : put_integers<long long>(s, "int64", step);
                put_integers<unsigned char>(s, "uint8", step);
                put_integers<unsigned short>(s, "uint16", step);
                put_integers<unsigned>(s, "uint32", step);
                step % 2 ? put_integers<unsigned long>(s, "uint64", step) : put_integers<unsigned long long>(s, "uint64", step);
                put_others(s, step);
                if (!s.step(step)) break;
                s.wait();
            }
    }
    return MPI_Finalize();
}
