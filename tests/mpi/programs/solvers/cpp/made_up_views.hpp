// Imitations of library views, with only the members that mpidata_views.hpp looks for.
#ifndef MADE_UP_VIEWS_HPP
#define MADE_UP_VIEWS_HPP

#include <array>
#include <cstddef>
#include <type_traits>

// Like std::span.
template <class T>
struct Span {
    T *first;
    std::size_t n;
    T *data() const { return first; }
    std::size_t size() const { return n; }
};

// Like std::mdspan with layout_stride.
template <class T, std::size_t Rank>
struct Mdspan {
    using element_type = T;
    using reference = T &;
    T *handle;
    std::array<int, Rank> extents, strides;
    static constexpr std::size_t rank() { return Rank; }
    static constexpr bool is_always_strided() { return true; }
    T *data_handle() const { return handle; }
    int extent(std::size_t r) const { return extents[r]; }
    int stride(std::size_t r) const { return strides[r]; }
    template <class... Index>
    T &at(Index... index) const {
        const std::array<int, Rank> indices{static_cast<int>(index)...};
        std::ptrdiff_t offset = 0;
        for (std::size_t r = 0; r < Rank; r++) offset += indices[r] * strides[r];
        return handle[offset];
    }
};

// Like a std::mdspan without dimensions, which has no stride().
template <class T>
struct Single {
    T *handle;
    static constexpr std::size_t rank() { return 0; }
    static constexpr std::size_t extent(std::size_t) { return 0; }
    T *data_handle() const { return handle; }
};

struct HostSpace {
    using memory_space = HostSpace;
};
struct DeviceSpace {
    using memory_space = DeviceSpace;
};
struct CudaSpace {
    using memory_space = CudaSpace;
    static constexpr const char *name() { return "Cuda"; }
};
struct ManagedSpace { // device memory that the host can read: it is its own mirror
    using memory_space = ManagedSpace;
};

// Like Kokkos::View up to version 4.0, whose rank is a number.
template <class T, std::size_t Rank, class Space = HostSpace, class Mirror = HostSpace>
struct KokkosView : Mdspan<T, Rank> {
    using memory_space = Space;
    using host_mirror_space = Mirror;
    using reference_type = T &;
    static constexpr unsigned rank = Rank; // hides the function
    T *data_handle() const = delete;
    T *data() const { return this->handle; }
    std::size_t size() const { return 0; } // not used
};

// Like Kokkos::View since then, whose rank is also a function.
template <class T, std::size_t Rank>
struct NewKokkosView : Mdspan<T, Rank> {
    using memory_space = HostSpace;
    struct host_mirror_type {
        using memory_space = HostSpace;
    };
    static constexpr std::integral_constant<std::size_t, Rank> rank{};
    T *data_handle() const = delete;
    T *data() const { return this->handle; }
};

#endif
