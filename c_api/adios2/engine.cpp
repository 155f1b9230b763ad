// An engine of ADIOS2 that streams into an mpidata job: what PluginLibrary names. ADIOS2 has had two interfaces for plugins:
// version 1, a class derived from its own engine, up to 2.11; and version 2, which has the public classes only.
#if __has_include(<adios2/plugin/PluginEngineInterface.h>)
#include <adios2/plugin/PluginEngineInterface.h>
#else
#include <adios2/engine/plugin/PluginEngineInterface.h>
#endif

#include <dlfcn.h>

#include <complex>
#include <stdexcept>
#include <type_traits>

#include "stream.hpp"

namespace mpidata_adios2 {

#ifdef ADIOS2_PLUGIN_ENGINE_INTERFACE
template <class T>
using Variable = adios2::Variable<T>;
template <class T>
using VariableArgument = adios2::Variable<T>;
template <class T>
using Span = typename adios2::Variable<T>::Span;
#else
template <class T>
using Variable = adios2::core::Variable<T>;
template <class T>
using VariableArgument = adios2::core::Variable<T> &;
template <class T>
using Span = typename adios2::core::Variable<T>::Span;
#endif

template <class T>
constexpr mpidata_dtype dtype_of() {
    if constexpr (std::is_same_v<T, float>) return MPIDATA_FLOAT32;
    else if constexpr (std::is_same_v<T, double>) return MPIDATA_FLOAT64;
    else if constexpr (std::is_same_v<T, std::complex<float>>) return MPIDATA_COMPLEX64;
    else if constexpr (std::is_same_v<T, std::complex<double>>) return MPIDATA_COMPLEX128;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) return std::is_signed_v<T> ? MPIDATA_INT8 : MPIDATA_UINT8;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 2) return std::is_signed_v<T> ? MPIDATA_INT16 : MPIDATA_UINT16;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return std::is_signed_v<T> ? MPIDATA_INT32 : MPIDATA_UINT32;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return std::is_signed_v<T> ? MPIDATA_INT64 : MPIDATA_UINT64;
    else return mpidata_dtype{}; // texts and long double: no dtype, which the library refuses if it is a field
}

static std::vector<std::size_t> in_c_order(const adios2::Dims &dims, bool is_reversed) {
    return is_reversed ? std::vector<std::size_t>(dims.rbegin(), dims.rend()) : std::vector<std::size_t>(dims.begin(), dims.end());
}

template <class T>
Block describe(Variable<T> &variable, const T *values, bool is_reversed) {
    Block block;
#ifdef ADIOS2_PLUGIN_ENGINE_INTERFACE
    const adios2::ShapeID kind = variable.ShapeID();
    const adios2::Dims start = variable.Start(), count = variable.Count();
    block.variable = variable.Name();
#else
    const adios2::ShapeID kind = variable.m_ShapeID;
    const adios2::Dims start = variable.m_Start, count = variable.m_Count;
    block.variable = variable.m_Name;
    block.memory_start = in_c_order(variable.m_MemoryStart, is_reversed);
    block.memory_count = in_c_order(variable.m_MemoryCount, is_reversed);
#endif
    block.dtype = dtype_of<T>();
    block.values = values;
    block.is_value = kind == adios2::ShapeID::GlobalValue;
    block.has_start = kind == adios2::ShapeID::GlobalArray;
    if (!block.is_value) block.count = in_c_order(count, is_reversed);
    if (kind == adios2::ShapeID::LocalValue) block.count = {1};
    if (block.has_start) block.start = start.empty() ? std::vector<std::size_t>(count.size()) : in_c_order(start, is_reversed);
    return block;
}

#ifdef ADIOS2_PLUGIN_ENGINE_INTERFACE
// Version 2 does not show the program's order of dimensions; only Fortran programs have another one.
static bool is_column_major(const adios2::IO &io) {
    const adios2::Params parameters = io.Parameters();
    const auto order = parameters.find("Order");
    const std::string value = order == parameters.end() ? "" : order->second;
    if (value == "row-major" || value == "column-major") return value == "column-major";
    if (!value.empty() || dlsym(RTLD_DEFAULT, "adios2_finalize_f2c_"))
        throw std::runtime_error("mpidata: This engine of ADIOS2 must know the order of dimensions in a program that may be in Fortran. In "
                                 "the XML file, give it the parameter Order, with the value column-major (Fortran) or row-major.");
    return false;
}
#endif

class Engine : public adios2::plugin::PluginEngineInterface {
public:
#ifndef ADIOS2_PLUGIN_ENGINE_INTERFACE
    Engine(adios2::core::IO &io, const std::string &name, const adios2::Mode mode, adios2::helper::Comm comm)
        : PluginEngineInterface(io, name, mode, std::move(comm)), is_reversed_(io.m_ArrayOrder == adios2::ArrayOrdering::ColumnMajor) {
        open(m_Comm.Rank(), [this](double number) { return m_Comm.BroadcastValue(number, 0); });
    }
#elif ADIOS2_USE_MPI
    Engine(adios2::IO io, const std::string &name, const adios2::Mode mode, MPI_Comm comm)
        : PluginEngineInterface(io, name, mode, comm), is_reversed_(is_column_major(io)) {
        int rank = 0;
        MPI_Comm_rank(comm, &rank);
        open(rank, [this](double number) {
            MPI_Bcast(&number, 1, MPI_DOUBLE, 0, m_Comm);
            return number;
        });
    }
#else
    Engine(adios2::IO io, const std::string &name, const adios2::Mode mode)
        : PluginEngineInterface(io, name, mode), is_reversed_(is_column_major(io)) {
        open(0, [](double number) { return number; });
    }
#endif

    adios2::StepStatus BeginStep(adios2::StepMode, const float) override {
        stream_.begin_step();
        return adios2::StepStatus::OK;
    }
    std::size_t CurrentStep() const override { return stream_.steps(); }
    void EndStep() override { stream_.end_step(); }
    void PerformPuts() override { stream_.perform(); }
    void PerformGets() override { refuse_reading(); }

#define MPIDATA_OF_TYPE(T)                                                                                             \
    void DoPutSync(VariableArgument<T> variable, const T *values) override {                                            \
        stream_.put(describe<T>(variable, values, is_reversed_));                                                       \
    }                                                                                                                   \
    void DoPutDeferred(VariableArgument<T> variable, const T *values) override {                                        \
        stream_.defer(describe<T>(variable, values, is_reversed_));                                                     \
    }                                                                                                                   \
    void DoGetSync(VariableArgument<T>, T *) override { refuse_reading(); }                                             \
    void DoGetDeferred(VariableArgument<T>, T *) override { refuse_reading(); }
    ADIOS2_FOREACH_STDTYPE_1ARG(MPIDATA_OF_TYPE)
#undef MPIDATA_OF_TYPE

#define MPIDATA_OF_TYPE(T)                                                                                              \
    void DoPut(VariableArgument<T>, Span<T> &, const bool, const T &) override {                                        \
        throw std::runtime_error("mpidata: This engine of ADIOS2 has no buffer, so Put cannot return a span. Put an array."); \
    }
    ADIOS2_FOREACH_PRIMITIVE_STDTYPE_1ARG(MPIDATA_OF_TYPE)
#undef MPIDATA_OF_TYPE

    void DoClose(const int) override { stream_.close(); }

private:
    void open(int rank, std::function<double(double)> from_first) {
        if (m_OpenMode != adios2::Mode::Write && m_OpenMode != adios2::Mode::Append) refuse_reading();
        stream_.open(rank, std::move(from_first));
    }

    [[noreturn]] static void refuse_reading() {
        throw std::runtime_error("mpidata: This engine of ADIOS2 only writes: its data goes to the training. Open the input with "
                                 "another engine.");
    }

    Stream stream_;
    bool is_reversed_; // whether dimensions come in the order of Fortran
};

} // namespace mpidata_adios2

#define MPIDATA_SHOWN extern "C" __attribute__((visibility("default")))

#ifndef ADIOS2_PLUGIN_ENGINE_INTERFACE
MPIDATA_SHOWN mpidata_adios2::Engine *EngineCreate(adios2::core::IO &io, const std::string &name, const adios2::Mode mode,
                                                    adios2::helper::Comm comm) {
    return new mpidata_adios2::Engine(io, name, mode, std::move(comm));
}
#elif ADIOS2_USE_MPI
MPIDATA_SHOWN mpidata_adios2::Engine *EngineCreate(adios2::IO io, const std::string &name, const adios2::Mode mode, MPI_Comm comm) {
    return new mpidata_adios2::Engine(io, name, mode, comm);
}
#else
MPIDATA_SHOWN mpidata_adios2::Engine *EngineCreate(adios2::IO io, const std::string &name, const adios2::Mode mode) {
    return new mpidata_adios2::Engine(io, name, mode);
}
#endif
MPIDATA_SHOWN void EngineDestroy(mpidata_adios2::Engine *engine) { delete engine; }
