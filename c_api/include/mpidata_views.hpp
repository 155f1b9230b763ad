/* The arrays and views that the calls of mpidata.hpp accept. A type whose elements are not at fixed distances, in memory
 * that the library can read, does not compile. This header includes no array library: it detects a view by its members.
 *
 *     view                                  shape                           strides
 *     a number                              ()                              none
 *     T[n][m], std::array<.., n>            (n, m), (n, ..)                 none: contiguous
 *     std::vector, std::span,               (size()), then the extents of   none: contiguous
 *       anything with data() and size(),    elements that are arrays
 *       and without stride or strides
 *     std::mdspan                           extent(r)                       stride(r)
 *     Kokkos::View                          extent(r)                       stride(r)
 *     Eigen matrix, array, Map, block       (rows(), cols()); of a vector   innerStride(), outerStride(), IsRowMajor
 *                                           type (size())
 *     mpidata::strided_array                its shape                       its strides
 *
 * The first index of the view is the first index of the field, for any memory order. Elements have the dtypes of
 * mpidata.h, const or not: bool, integers of 8 to 64 bits (not char), float, double, std::complex of these, and the
 * compiler's _Float16 and __bf16. For another type with the same bits, specialize dtype_of:
 *
 *     template <> struct mpidata::dtype_of<Eigen::half> : mpidata::dtype_is<MPIDATA_FLOAT16> {};
 */
#ifndef MPIDATA_VIEWS_HPP
#define MPIDATA_VIEWS_HPP

#ifdef MPIDATA_WITHOUT_MPI
#include "mpidata_carried.h"
#else
#include "mpidata.h"
#endif
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <vector>

namespace mpidata {

/* -- dtypes -------------------------------------------------------------------------------------------------------- */

template <mpidata_dtype Dtype>
using dtype_is = std::integral_constant<mpidata_dtype, Dtype>;

/* The dtype of an element type, in `value`. */
template <class T>
struct dtype_of {};

namespace detail {

template <class T>
constexpr mpidata_dtype integer() {
    constexpr bool has_sign = std::is_signed_v<T>;
    switch (sizeof(T)) {
    case 1: return has_sign ? MPIDATA_INT8 : MPIDATA_UINT8;
    case 2: return has_sign ? MPIDATA_INT16 : MPIDATA_UINT16;
    case 4: return has_sign ? MPIDATA_INT32 : MPIDATA_UINT32;
    default: return has_sign ? MPIDATA_INT64 : MPIDATA_UINT64;
    }
}

} // namespace detail

template <> struct dtype_of<bool> : dtype_is<MPIDATA_BOOL> {};
template <> struct dtype_of<signed char> : dtype_is<MPIDATA_INT8> {};
template <> struct dtype_of<unsigned char> : dtype_is<MPIDATA_UINT8> {};
template <> struct dtype_of<short> : dtype_is<detail::integer<short>()> {};
template <> struct dtype_of<unsigned short> : dtype_is<detail::integer<unsigned short>()> {};
template <> struct dtype_of<int> : dtype_is<detail::integer<int>()> {};
template <> struct dtype_of<unsigned> : dtype_is<detail::integer<unsigned>()> {};
template <> struct dtype_of<long> : dtype_is<detail::integer<long>()> {};
template <> struct dtype_of<unsigned long> : dtype_is<detail::integer<unsigned long>()> {};
template <> struct dtype_of<long long> : dtype_is<detail::integer<long long>()> {};
template <> struct dtype_of<unsigned long long> : dtype_is<detail::integer<unsigned long long>()> {};
template <> struct dtype_of<float> : dtype_is<MPIDATA_FLOAT32> {};
template <> struct dtype_of<double> : dtype_is<MPIDATA_FLOAT64> {};
template <> struct dtype_of<std::complex<float>> : dtype_is<MPIDATA_COMPLEX64> {};
template <> struct dtype_of<std::complex<double>> : dtype_is<MPIDATA_COMPLEX128> {};
#ifdef __FLT16_MANT_DIG__
template <> struct dtype_of<_Float16> : dtype_is<MPIDATA_FLOAT16> {};
#endif
#ifdef __BFLT16_MANT_DIG__
template <> struct dtype_of<__bf16> : dtype_is<MPIDATA_BFLOAT16> {};
#endif

/* -- the common form of all views ---------------------------------------------------------------------------------- */

namespace detail {

/* Wraps around: the library refuses such extents. */
constexpr std::int64_t product(std::int64_t one, std::int64_t other) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(one) * static_cast<std::uint64_t>(other));
}

template <class Container>
constexpr bool has_integers() {
    using number = std::decay_t<decltype(*std::begin(std::declval<const Container &>()))>;
    return std::is_integral_v<number> && !std::is_same_v<number, bool>;
}

} // namespace detail

/* Up to MPIDATA_MAX_NDIM integers: a shape, a start or strides. Constructed from integers, {64, 64}, or a container. */
class extents {
public:
    template <class... Number, std::enable_if_t<(std::is_integral_v<Number> && ...), int> = 0>
    extents(Number... numbers) {
        static_assert(sizeof...(numbers) <= MPIDATA_MAX_NDIM, "mpidata: a field has at most MPIDATA_MAX_NDIM dimensions");
        (add(numbers), ...);
    }

    template <class Container, class = decltype(std::begin(std::declval<const Container &>()))>
    extents(const Container &container) {
        static_assert(detail::has_integers<Container>(), "mpidata: extents, starts and strides are integers");
        for (const auto number : container) add(number);
    }

    int size() const noexcept { return n_; }
    const std::int64_t *data() const noexcept { return values_.data(); }

private:
    template <class Number>
    void add(Number number) noexcept {
        if (n_ < MPIDATA_MAX_NDIM) values_[static_cast<std::size_t>(n_)] = static_cast<std::int64_t>(number);
        n_++; /* the call that gets them refuses too many */
    }

    int n_ = 0;
    std::array<std::int64_t, MPIDATA_MAX_NDIM> values_{};
};

/* An array in memory: element [i, j, ...] is `strides[0]` * i + `strides[1]` * j + ... bytes after `values`. */
struct strided_array {
    const void *values = nullptr;
    mpidata_dtype dtype = MPIDATA_FLOAT32;
    std::size_t element_bytes = 0;
    int ndim = 0; /* of the view; the call that puts it refuses more than MPIDATA_MAX_NDIM */
    std::array<std::int64_t, MPIDATA_MAX_NDIM> shape{}, strides{};

    /* Whether the elements are contiguous in C order. */
    bool contiguous() const noexcept {
        auto next = static_cast<std::int64_t>(element_bytes);
        bool side_by_side = true;
        for (int d = (ndim < MPIDATA_MAX_NDIM ? ndim : MPIDATA_MAX_NDIM) - 1; d >= 0; d--) {
            const auto i = static_cast<std::size_t>(d);
            if (shape[i] == 0) return true;
            if (shape[i] != 1 && strides[i] != next) side_by_side = false;
            next = detail::product(next, shape[i]);
        }
        return side_by_side;
    }
};

/* -- members of a view --------------------------------------------------------------------------------------------- */

namespace detail {

template <class T, class = void> struct has_dtype : std::false_type {};
template <class T> struct has_dtype<T, std::void_t<decltype(dtype_of<T>::value)>> : std::true_type {};

/* Nested arrays: their element type and their extents. */
template <class T>
struct nested {
    using element = T;
    static constexpr int ndim = 0;
    static void extents_to(std::int64_t *) noexcept {}
};
template <class T, std::size_t N>
struct nested_in {
    using element = typename nested<std::remove_cv_t<T>>::element;
    static constexpr int ndim = nested<std::remove_cv_t<T>>::ndim + 1;
    static void extents_to(std::int64_t *to) noexcept {
        *to = static_cast<std::int64_t>(N);
        nested<std::remove_cv_t<T>>::extents_to(to + 1);
    }
};
template <class T, std::size_t N> struct nested<T[N]> : nested_in<T, N> {};
template <class T, std::size_t N> struct nested<std::array<T, N>> : nested_in<T, N> {
    static_assert(N == 0 || sizeof(std::array<T, N>) == N * sizeof(T), "mpidata: std::array has gaps here");
};

#define MPIDATA_DETECT(name, expression)                                             \
    template <class V, class = void> struct name : std::false_type {};               \
    template <class V> struct name<V, std::void_t<decltype(expression)>> : std::true_type {}
#define MPIDATA_OF(V) std::declval<const V &>()
MPIDATA_DETECT(has_data, *MPIDATA_OF(V).data());
MPIDATA_DETECT(has_size, MPIDATA_OF(V).size());
MPIDATA_DETECT(has_rank, MPIDATA_OF(V).rank());
MPIDATA_DETECT(has_static_rank, static_cast<int>(V::rank));
MPIDATA_DETECT(has_extent, MPIDATA_OF(V).extent(0));
MPIDATA_DETECT(has_stride, static_cast<std::int64_t>(MPIDATA_OF(V).stride(0)));
MPIDATA_DETECT(has_handle, MPIDATA_OF(V).data_handle());
MPIDATA_DETECT(has_always_strided, V::is_always_strided());
MPIDATA_DETECT(has_memory_space, std::declval<typename V::memory_space *>());
MPIDATA_DETECT(has_mirror_space, std::declval<typename V::host_mirror_space::memory_space *>());
MPIDATA_DETECT(has_mirror_type, std::declval<typename V::host_mirror_type::memory_space *>());
MPIDATA_DETECT(has_reference_type, std::declval<typename V::reference_type>());
MPIDATA_DETECT(has_reference, std::declval<typename V::reference>());
MPIDATA_DETECT(has_tiles, V::array_layout::outer_pattern);
MPIDATA_DETECT(has_rows, MPIDATA_OF(V).rows() + MPIDATA_OF(V).cols());
MPIDATA_DETECT(has_two_strides, MPIDATA_OF(V).innerStride() + MPIDATA_OF(V).outerStride());
MPIDATA_DETECT(has_order, static_cast<bool>(V::IsRowMajor));
MPIDATA_DETECT(has_flags, static_cast<unsigned>(V::Flags));
MPIDATA_DETECT(is_vector_type, static_cast<bool>(V::IsVectorAtCompileTime));
MPIDATA_DETECT(has_shape, MPIDATA_OF(V).shape());
MPIDATA_DETECT(has_shape_of, MPIDATA_OF(V).shape(0));
MPIDATA_DETECT(has_stride_member, &V::stride);
MPIDATA_DETECT(has_stride_call, MPIDATA_OF(V).stride());
MPIDATA_DETECT(has_stride_of, MPIDATA_OF(V).stride(0));
MPIDATA_DETECT(has_strides_member, &V::strides);
MPIDATA_DETECT(has_strides_call, MPIDATA_OF(V).strides());
MPIDATA_DETECT(has_strides_of, MPIDATA_OF(V).strides(0));
MPIDATA_DETECT(has_dimensions, MPIDATA_OF(V).dimensions());
#undef MPIDATA_DETECT

/* Whether the host can read it: otherwise Kokkos would mirror it in another memory. */
template <class V>
constexpr bool in_host_memory() {
    if constexpr (has_mirror_space<V>::value)
        return std::is_same_v<typename V::host_mirror_space::memory_space, typename V::memory_space>;
    else if constexpr (has_mirror_type<V>::value)
        return std::is_same_v<typename V::host_mirror_type::memory_space, typename V::memory_space>;
    else return false;
}

/* Kokkos' atomic views and those of automatic differentiation, and mdspan's scaling accessors, have elements of other
 * types than those in memory. */
template <class V>
constexpr bool has_plain_elements() {
    if constexpr (has_reference_type<V>::value) return std::is_lvalue_reference_v<typename V::reference_type>;
    else if constexpr (has_reference<V>::value) return std::is_lvalue_reference_v<typename V::reference>;
    else return true;
}

template <class V>
constexpr bool is_always_strided() {
    if constexpr (has_always_strided<V>::value) return V::is_always_strided() && !has_tiles<V>::value;
    else return !has_tiles<V>::value; /* Kokkos' LayoutTiled has tiles */
}

template <class V>
constexpr bool is_device_view() {
    if constexpr (has_memory_space<V>::value) return !in_host_memory<V>();
    else return false;
}

/* The device memory that the library can read, by Kokkos' names: CUDA and HIP. */
constexpr bool has_known_name(const char *name) {
    for (const char *known : {"Cuda", "HIP"}) {
        const char *of = name;
        while (*known && *known == *of) known++, of++;
        if (!*known) return true;
    }
    return false;
}

template <class V, class = void> struct is_readable_device : std::false_type {};
template <class V>
struct is_readable_device<V, std::enable_if_t<has_known_name(V::memory_space::name())>> : std::true_type {};

template <class V>
constexpr bool is_kokkos_like() {
    return has_memory_space<V>::value && has_data<V>::value && has_extent<V>::value && has_stride<V>::value &&
           (has_rank<V>::value || has_static_rank<V>::value) && has_plain_elements<V>() && is_always_strided<V>();
}

template <class V, class = void> struct is_single_element : std::false_type {}; /* an mdspan without dimensions has no stride() */
template <class V> struct is_single_element<V, std::enable_if_t<V::rank() == 0>> : std::true_type {};

template <class V>
constexpr bool is_mdspan_like() {
    return !has_memory_space<V>::value && has_handle<V>::value && has_rank<V>::value && has_plain_elements<V>() &&
           is_always_strided<V>() && ((has_extent<V>::value && has_stride<V>::value) || is_single_element<V>::value);
}

/* Eigen declares data() also for the transpose of an expression: 0x40 is its DirectAccessBit. */
template <class V>
constexpr bool has_direct_access() {
    if constexpr (has_flags<V>::value) return (static_cast<unsigned>(V::Flags) & 0x40U) != 0;
    else return true;
}

template <class V>
constexpr bool is_eigen_like() {
    return has_rows<V>::value && has_two_strides<V>::value && has_order<V>::value && has_data<V>::value && has_direct_access<V>();
}

/* Whether it has a data() and a size(), and no member that tells of more dimensions. */
template <class V>
constexpr bool is_row_like() {
    return has_data<V>::value && has_size<V>::value && !has_memory_space<V>::value && !has_handle<V>::value && !has_rows<V>::value &&
           !has_rank<V>::value && !has_static_rank<V>::value && !has_extent<V>::value && !has_shape<V>::value &&
           !has_dimensions<V>::value;
}

template <class V>
constexpr bool has_strides() {
    return has_stride_member<V>::value || has_stride_call<V>::value || has_stride_of<V>::value || has_strides_member<V>::value ||
           has_strides_call<V>::value || has_strides_of<V>::value;
}

template <class V>
constexpr bool is_span_like() { return is_row_like<V>() && !has_strides<V>() && !has_shape_of<V>::value; }

template <class V>
constexpr bool is_fixed() { return nested<V>::ndim > 0; }

/* -- from a view to the addresses of its elements ------------------------------------------------------------------ */

constexpr std::size_t bytes_of(mpidata_dtype dtype) {
    switch (dtype) {
    case MPIDATA_BOOL: case MPIDATA_INT8: case MPIDATA_UINT8: return 1;
    case MPIDATA_INT16: case MPIDATA_UINT16: case MPIDATA_FLOAT16: case MPIDATA_BFLOAT16: return 2;
    case MPIDATA_INT32: case MPIDATA_UINT32: case MPIDATA_FLOAT32: return 4;
    case MPIDATA_INT64: case MPIDATA_UINT64: case MPIDATA_FLOAT64: case MPIDATA_COMPLEX64: return 8;
    case MPIDATA_COMPLEX128: return 16;
    }
    return 0;
}

template <class Element>
strided_array begin_at(const Element *values, int ndim) {
    using T = std::remove_cv_t<Element>;
    strided_array to;
    static_assert(has_dtype<T>::value, "mpidata: the elements of this array have no dtype of mpidata.h: see mpidata::dtype_of");
    if constexpr (has_dtype<T>::value) {
        static_assert(sizeof(T) == bytes_of(dtype_of<T>::value), "mpidata: this mpidata::dtype_of is for elements of another size");
        to.dtype = dtype_of<T>::value;
    }
    to.values = values;
    to.element_bytes = sizeof(T);
    to.ndim = ndim;
    return to;
}

inline void in_c_order(strided_array &to) noexcept {
    auto next = static_cast<std::int64_t>(to.element_bytes);
    for (int d = (to.ndim < MPIDATA_MAX_NDIM ? to.ndim : MPIDATA_MAX_NDIM) - 1; d >= 0; d--) {
        to.strides[static_cast<std::size_t>(d)] = next;
        next = product(next, to.shape[static_cast<std::size_t>(d)]);
    }
}

template <class Element, class Inner = nested<std::remove_cv_t<Element>>>
strided_array row_of(const Element *values, std::size_t n) {
    static_assert(Inner::ndim < MPIDATA_MAX_NDIM, "mpidata: a field has at most MPIDATA_MAX_NDIM dimensions");
    const void *first = values;
    strided_array to = begin_at(static_cast<const typename Inner::element *>(first), Inner::ndim + 1);
    to.shape[0] = static_cast<std::int64_t>(n);
    Inner::extents_to(to.shape.data() + 1);
    in_c_order(to);
    return to;
}

template <class V>
int rank_of(const V &view) {
    (void)view;
    if constexpr (has_rank<V>::value) return static_cast<int>(view.rank());
    else return static_cast<int>(V::rank);
}

template <class Element, class V>
strided_array by_extents(const Element *values, const V &view) {
    strided_array to = begin_at(values, rank_of(view));
    if constexpr (has_stride<V>::value)
        for (int d = 0; d < to.ndim && d < MPIDATA_MAX_NDIM; d++) {
            const auto i = static_cast<std::size_t>(d);
            to.shape[i] = static_cast<std::int64_t>(view.extent(static_cast<unsigned>(d)));
            to.strides[i] = product(static_cast<std::int64_t>(view.stride(static_cast<unsigned>(d))), static_cast<std::int64_t>(to.element_bytes));
        }
    return to;
}

template <class V>
strided_array of_matrix(const V &view) {
    strided_array to = begin_at(view.data(), 2);
    const auto bytes = static_cast<std::int64_t>(to.element_bytes);
    const std::int64_t inner = static_cast<std::int64_t>(view.innerStride()) * bytes;
    const std::int64_t outer = static_cast<std::int64_t>(view.outerStride()) * bytes;
    if constexpr (is_vector_type<V>::value)
        if (static_cast<bool>(V::IsVectorAtCompileTime)) {
            to.ndim = 1;
            to.shape = {static_cast<std::int64_t>(view.rows()) * static_cast<std::int64_t>(view.cols())};
            to.strides = {inner};
            return to;
        }
    to.shape = {static_cast<std::int64_t>(view.rows()), static_cast<std::int64_t>(view.cols())};
    if (static_cast<bool>(V::IsRowMajor)) to.strides = {outer, inner};
    else to.strides = {inner, outer};
    return to;
}

} // namespace detail

/* -- for programs -------------------------------------------------------------------------------------------------- */

/* Return the address, shape and strides of a view. Valid as long as its elements stay there. */
template <class View>
strided_array describe(const View &view) {
    constexpr bool is_scalar = detail::has_dtype<View>::value;
    constexpr bool is_strided = is_scalar || detail::is_fixed<View>() || detail::is_kokkos_like<View>() || detail::is_mdspan_like<View>() ||
                                detail::is_eigen_like<View>() || detail::is_span_like<View>() || std::is_same_v<View, strided_array>;
    constexpr bool is_readable = !detail::is_device_view<View>() || detail::is_readable_device<View>::value;
    static_assert(is_readable, "mpidata: this view is in the memory of a device that is neither CUDA's nor HIP's, or not known to be in that "
                               "of the host: copy it to a view of the host");
    constexpr bool has_unknown_strides = detail::is_row_like<View>() && detail::has_strides<View>();
    static_assert(!has_unknown_strides, "mpidata: this view has strides, but not the members of a view that mpidata knows, so they would be "
                                        "ignored: put mpidata::array(pointer, shape, strides), with strides in bytes");
    static_assert(is_strided || !is_readable || has_unknown_strides,
                  "mpidata: this is not an array whose elements lie in memory at fixed distances: copy it into one "
                  "(a pointer needs a shape: mpidata::array(pointer, {64, 64}))");
    if constexpr (!is_readable || !is_strided) return {};
    else if constexpr (std::is_same_v<View, strided_array>) return view;
    else if constexpr (is_scalar) return detail::begin_at(&view, 0);
    else if constexpr (std::is_array_v<View>) return detail::row_of(&view[0], std::extent_v<View>);
    else if constexpr (detail::is_fixed<View>()) return detail::row_of(view.data(), view.size());
    else if constexpr (detail::is_kokkos_like<View>()) return detail::by_extents(view.data(), view);
    else if constexpr (detail::is_mdspan_like<View>()) return detail::by_extents(view.data_handle(), view);
    else if constexpr (detail::is_eigen_like<View>()) return detail::of_matrix(view);
    else return detail::row_of(view.data(), static_cast<std::size_t>(view.size()));
}

/* Return the array at a pointer, contiguous and in C order. */
template <class T>
strided_array array(const T *values, const extents &shape) {
    strided_array to = detail::begin_at(values, shape.size());
    for (std::size_t d = 0; d < to.shape.size(); d++) to.shape[d] = shape.data()[d];
    detail::in_c_order(to);
    return to;
}

/* Return the array at a pointer with strides: bytes from one index to the next in each dimension, as in
 * mpidata_put_strided. */
template <class T>
strided_array array(const T *values, const extents &shape, const extents &strides) {
    strided_array to = array(values, shape);
    for (std::size_t d = 0; d < to.strides.size(); d++) to.strides[d] = strides.data()[d];
    if (strides.size() != shape.size()) to.ndim = -1; /* the call that puts it refuses this */
    return to;
}

} // namespace mpidata

#undef MPIDATA_OF
#endif
