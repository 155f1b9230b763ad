/* mpidata.h for C++17: containers and views instead of pointers, exceptions instead of status codes.
 *
 *     #include <mpidata.hpp>
 *
 *     void solve(MPI_Comm world) {
 *         mpidata::job job(world);
 *         for (auto &simulation : job.simulations()) {
 *             std::vector<double> u(64);
 *             const double alpha = simulation.param("alpha");
 *             for (int step = 0; step < 100; step++) {
 *                 advance(u, alpha, job.group());
 *                 simulation.put("temperature", u);
 *                 if (!simulation.step(0.01 * (step + 1))) break;
 *             }
 *         }
 *     } // leaves the job: before MPI_Finalize
 *
 * The calls are those of mpidata.h, which documents what each does, which are collective, and when they block.
 * mpidata_views.hpp lists the arrays that they accept. A carried program includes mpidata_carried.h before this header,
 * and writes `mpidata::job job;`.
 *
 * Status codes. The puts, step, infer, infer_begin, question::wait, fail and refresh have two forms. `put` throws
 * mpidata::error. `try_put` does not throw, and returns MPIDATA_SUCCESS, MPIDATA_END, MPIDATA_CANCELLED or an
 * MPIDATA_ERR_ code. The other calls only throw: the constructors of job and map, the loop over simulations, param,
 * param_text, simulation::wait, wait_for, published and finalize. MPIDATA_END and MPIDATA_CANCELLED are not errors:
 * `step` and others then return false, which means: leave the loop over steps.
 *
 * Exceptions. If an exception leaves the scope of the job object, the object's destructor ends this rank, with exit
 * status 1 and a message on stderr. The other ranks are notified, and the simulation is run again. Handlers outside
 * that scope do not run, so catch and print exceptions inside it. A handler outside, for example in main, is still
 * needed: without one, C++ calls std::terminate, usually before any destructor. */
#ifndef MPIDATA_HPP
#define MPIDATA_HPP

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "mpidata_views.hpp"

/* Refuse a put because of an error that this header has found, in the same way as the library refuses it. */
extern "C" int mpidata_misuse(int status, const char *what, const char *advice);

/* mpidata_put_mapped, or if as_indices is 1 mpidata_put_indices, of an array with strides as in mpidata_put_strided. */
extern "C" int mpidata_put_strided_rows(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                                        const int64_t *strides, const mpidata_map *map, int as_indices);

namespace mpidata {

/* The exception that calls throw: the library's error message, and its code, an MPIDATA_ERR_. */
class error : public std::runtime_error {
public:
    error(int code, const std::string &sentence) : std::runtime_error(sentence), code_(code) {}
    int code() const noexcept { return code_; }

private:
    int code_;
};

namespace detail {

/* True on success, false if the job is stopping or the simulation is cancelled; throws on an error. */
inline bool check(int status) {
    if (status == MPIDATA_SUCCESS) return true;
    if (status == MPIDATA_END || status == MPIDATA_CANCELLED) return false;
    throw error(status, mpidata_last_error());
}

/* Does not allocate memory, so it also refuses for lack of it. */
inline int refuse(int status, const char *field, const char *what, const char *advice) noexcept {
    char text[256];
    (void)std::snprintf(text, sizeof text, "Field '%.100s': %s", field, what);
    return mpidata_misuse(status, text, advice);
}

inline int check_dimensions(const char *field, const strided_array &array, const extents *start) noexcept {
    char what[100];
    if (array.ndim < 0)
        return refuse(MPIDATA_ERR_ARGUMENT, field, "an array has not as many strides as extents", "Give one of each for each dimension.");
    (void)std::snprintf(what, sizeof what, "%d dimensions", array.ndim);
    if (array.ndim > MPIDATA_MAX_NDIM) return refuse(MPIDATA_ERR_ARGUMENT, field, what, "0 to 6 dimensions are possible.");
    if (!start || start->size() == array.ndim) return MPIDATA_SUCCESS;
    (void)std::snprintf(what, sizeof what, "the block has %d dimensions, but its start %d", array.ndim, start->size());
    return refuse(MPIDATA_ERR_ARGUMENT, field, what, "Give one index for each dimension.");
}

inline int check_map(const char *field, const mpidata_map *rows) noexcept {
    if (rows) return MPIDATA_SUCCESS;
    return refuse(MPIDATA_ERR_ARGUMENT, field, "the map is empty, because it was moved from", "Pass the map that it was moved to.");
}

} // namespace detail

/* A map: the row numbers of the rows that this rank holds, see mpidata_map. Create it once for each partition.
 * Move-only: puts refuse a map that was moved from. */
class map {
public:
    /* indices: a container of integers, from 0: row i of the values is row indices[i] of the field. Throws error. */
    template <class Indices>
    explicit map(const Indices &indices) {
        static_assert(detail::has_integers<Indices>(), "mpidata: the row numbers of a map are integers");
        std::vector<std::int64_t> rows;
        for (const auto row : indices) rows.push_back(static_cast<std::int64_t>(row));
        detail::check(mpidata_map_create(static_cast<std::int64_t>(rows.size()), rows.data(), &map_));
    }
    map(map &&other) noexcept : map_(std::exchange(other.map_, nullptr)) {}
    map &operator=(map &&other) noexcept {
        std::swap(map_, other.map_);
        return *this;
    }
    ~map() { (void)mpidata_map_free(&map_); }
    const mpidata_map *get() const noexcept { return map_; }

private:
    mpidata_map *map_ = nullptr;
};

/* A lent array must be an lvalue, because it must stay where it is. */
namespace detail {
template <class View>
constexpr bool may_be_lent = std::is_lvalue_reference_v<View> || std::is_same_v<std::decay_t<View>, strided_array>;
}

/* An array of a question: its name, and a view, contiguous and in C order. */
class input {
public:
    template <class View>
    input(const char *name, View &&view) : name_(name), array_(describe(view)) {
        static_assert(detail::may_be_lent<View>, "mpidata: what is lent must stay where it is: give the array a name");
    }

protected:
    friend class simulation;
    const char *name_;
    strided_array array_;
};

/* An array of an answer: the same, but not const. */
class output : public input {
public:
    template <class View>
    output(const char *name, View &&view) : input(name, std::forward<View>(view)) {
        static_assert(is_writable<std::remove_reference_t<View>>(), "mpidata: an answer is written to this array, which is const");
    }

private:
    template <class View>
    static constexpr bool is_writable() {
        if constexpr (std::is_array_v<View> || detail::has_dtype<std::remove_cv_t<View>>::value) return !std::is_const_v<View>;
        else if constexpr (detail::has_handle<View>::value)
            return !std::is_const_v<std::remove_pointer_t<decltype(std::declval<View &>().data_handle())>>;
        else if constexpr (detail::has_data<View>::value)
            return !std::is_const_v<std::remove_pointer_t<decltype(std::declval<View &>().data())>>;
        else return true; /* describe() refuses it, or it is a strided_array */
    }
};

/* An open question. Its arrays are lent until wait() returns; the destructor also waits. Move-only. */
class question {
public:
    question() = default;
    question(question &&other) noexcept : open_(std::exchange(other.open_, 0)) {}
    question &operator=(question &&other) noexcept {
        std::swap(open_, other.open_);
        return *this;
    }
    ~question() {
        if (open_) (void)mpidata_infer_wait(&open_);
    }
    /* mpidata_infer_wait. wait returns false when the job is stopping. */
    int try_wait() { return mpidata_infer_wait(&open_); }
    bool wait() { return detail::check(try_wait()); }

private:
    friend class simulation;
    mpidata_question open_ = 0;
};

/* The current simulation of this rank's group. There is one object, which belongs to the job; a loop over
 * job::simulations() returns a reference to it. */
class simulation {
public:
    simulation(const simulation &) = delete;
    simulation &operator=(const simulation &) = delete;

    /* The id of the simulation, from 0, the same on all ranks of the group. */
    std::int64_t id() const noexcept { return id_; }

    /* mpidata_param and mpidata_param_text; when the job is stopping, 0 and "". */
    double param(const std::string &name) const {
        double value = 0;
        detail::check(mpidata_param(name.c_str(), &value));
        return value;
    }
    std::string param_text(const std::string &name) const {
        char text[MPIDATA_MAX_TEXT] = "";
        detail::check(mpidata_param_text(name.c_str(), text, sizeof text));
        return text;
    }

    /* mpidata_put, for a view with any strides, also in the memory of a CUDA or HIP device: see mpidata_device_stream.
     * The call gathers the elements of a view that is not contiguous in C order. */
    template <class View>
    int try_put(const std::string &field, const View &view) {
        return put_at(field, describe(view), nullptr);
    }
    template <class View>
    void put(const std::string &field, const View &view) {
        detail::check(try_put(field, view));
    }

    /* mpidata_put_block. start: the index of the view's first element in the field, for example {row, column}. */
    template <class View>
    int try_put_block(const std::string &field, const View &view, const extents &start) {
        return put_at(field, describe(view), &start);
    }
    template <class View>
    void put_block(const std::string &field, const View &view, const extents &start) {
        detail::check(try_put_block(field, view, start));
    }

    /* mpidata_put_mapped. */
    template <class View>
    int try_put_mapped(const std::string &field, const View &view, const map &rows) {
        if (const int status = detail::check_map(field.c_str(), rows.get())) return status;
        return put_rows(field, describe(view), rows.get(), false);
    }
    template <class View>
    void put_mapped(const std::string &field, const View &view, const map &rows) {
        detail::check(try_put_mapped(field, view, rows));
    }

    /* mpidata_put_indices, with or without a map from local to global indices. */
    template <class View>
    int try_put_indices(const std::string &field, const View &view) {
        return put_rows(field, describe(view), nullptr, true);
    }
    template <class View>
    int try_put_indices(const std::string &field, const View &view, const map &rows) {
        if (const int status = detail::check_map(field.c_str(), rows.get())) return status;
        return put_rows(field, describe(view), rows.get(), true);
    }
    template <class... Arguments>
    void put_indices(const std::string &field, const Arguments &...view_and_map) {
        detail::check(try_put_indices(field, view_and_map...));
    }

    /* mpidata_iput, for a whole field or with a start. The array is lent until wait() or wait_for(view) returns, so it
     * must be an lvalue or a strided_array. An array that is not contiguous in C order is copied. */
    template <class View>
    int try_iput(const std::string &field, View &&view) {
        static_assert(detail::may_be_lent<View>, "mpidata: what is lent must stay where it is: give the array a name");
        return iput_at(field, describe(view), nullptr);
    }
    template <class View>
    int try_iput(const std::string &field, View &&view, const extents &start) {
        static_assert(detail::may_be_lent<View>, "mpidata: what is lent must stay where it is: give the array a name");
        return iput_at(field, describe(view), &start);
    }
    template <class View>
    void iput(const std::string &field, View &&view) {
        detail::check(try_iput(field, std::forward<View>(view)));
    }
    template <class View>
    void iput(const std::string &field, View &&view, const extents &start) {
        detail::check(try_iput(field, std::forward<View>(view), start));
    }

    /* mpidata_wait and mpidata_wait_for. */
    void wait() { detail::check(mpidata_wait()); }
    template <class View>
    void wait_for(const View &view) {
        detail::check(mpidata_wait_for(describe(view).values));
    }

    /* mpidata_step. step returns false when the job is stopping or this simulation is cancelled. */
    int try_step(double time) { return mpidata_step(time); }
    bool step(double time) { return detail::check(try_step(time)); }

    /* mpidata_infer, as infer({{"x", x}}, {{"y", y}}). infer returns false when the job is stopping or this simulation
     * is cancelled. */
    int try_infer(std::initializer_list<input> in, std::initializer_list<output> out, std::int64_t *version = nullptr) {
        question asked;
        const int status = try_infer_begin(asked, in, out, version);
        return status ? status : asked.try_wait();
    }
    bool infer(std::initializer_list<input> in, std::initializer_list<output> out, std::int64_t *version = nullptr) {
        return detail::check(try_infer(in, out, version));
    }

    /* mpidata_infer_begin. The arrays and `version` are lent until wait() of the question returns. */
    int try_infer_begin(question &asked, std::initializer_list<input> in, std::initializer_list<output> out,
                        std::int64_t *version = nullptr) {
        std::vector<mpidata_array> from, to;
        try {
            from.reserve(in.size());
            to.reserve(out.size());
        } catch (const std::exception &) {
            return mpidata_misuse(MPIDATA_ERR_MEMORY, "Out of memory for a question", "Free memory, or ask about fewer arrays.");
        }
        for (const input &array : in)
            if (const int status = add_array(from, array)) return status;
        for (const output &array : out)
            if (const int status = add_array(to, array)) return status;
        if (asked.open_)
            if (const int status = asked.try_wait()) return status;
        return mpidata_infer_begin(from.data(), static_cast<int>(from.size()), to.data(), static_cast<int>(to.size()), version,
                                   &asked.open_);
    }
    bool infer_begin(question &asked, std::initializer_list<input> in, std::initializer_list<output> out,
                     std::int64_t *version = nullptr) {
        return detail::check(try_infer_begin(asked, in, out, version));
    }

    /* mpidata_fail: then leave the loop over steps. */
    int try_fail(const std::string &reason) { return mpidata_fail(reason.c_str()); }
    void fail(const std::string &reason) { detail::check(try_fail(reason)); }

private:
    friend class job;
    simulation() = default;

    static int put_at(const std::string &field, const strided_array &array, const extents *start) {
        if (const int status = detail::check_dimensions(field.c_str(), array, start)) return status;
        const char *name = field.c_str();
        const std::int64_t *shape = array.shape.data(), *first = start ? start->data() : nullptr;
        if (!array.contiguous())
            return mpidata_put_strided(name, array.values, array.dtype, array.ndim, shape, first, array.strides.data());
        return start ? mpidata_put_block(name, array.values, array.dtype, array.ndim, shape, first)
                     : mpidata_put(name, array.values, array.dtype, array.ndim, shape);
    }

    static int iput_at(const std::string &field, const strided_array &array, const extents *start) {
        if (!array.contiguous()) return put_at(field, array, start);
        if (const int status = detail::check_dimensions(field.c_str(), array, start)) return status;
        return mpidata_iput(field.c_str(), array.values, array.dtype, array.ndim, array.shape.data(), start ? start->data() : nullptr);
    }

    static int put_rows(const std::string &field, const strided_array &array, const mpidata_map *rows, bool as_indices) {
        if (const int status = detail::check_dimensions(field.c_str(), array, nullptr)) return status;
        const char *name = field.c_str();
        const std::int64_t *shape = array.shape.data();
        if (!array.contiguous())
            return mpidata_put_strided_rows(name, array.values, array.dtype, array.ndim, shape, array.strides.data(), rows, as_indices);
        return (as_indices ? mpidata_put_indices : mpidata_put_mapped)(name, array.values, array.dtype, array.ndim, shape, rows);
    }

    static int add_array(std::vector<mpidata_array> &to, const input &from) {
        const strided_array &array = from.array_;
        if (const int status = detail::check_dimensions(from.name_, array, nullptr)) return status;
        if (!array.contiguous())
            return detail::refuse(MPIDATA_ERR_ARGUMENT, from.name_, "an array of a question does not lie side by side in C order",
                                  "Copy it to one that does.");
        to.push_back({from.name_, const_cast<void *>(array.values), array.dtype, array.ndim, array.shape.data()});
        return MPIDATA_SUCCESS;
    }

    std::int64_t id_ = -1;
};

/* A published array, in memory of the library: read-only, and valid until the next refresh. */
template <class T>
class published_array {
public:
    /* Whether anything has been published yet. */
    explicit operator bool() const noexcept { return values_ != nullptr; }
    const T *data() const noexcept { return values_; } /* in C order */
    int rank() const noexcept { return ndim_; }
    std::int64_t extent(int dimension) const { return shape_.at(static_cast<std::size_t>(dimension)); }

private:
    friend class job;
    const T *values_ = nullptr;
    int ndim_ = 0;
    std::array<std::int64_t, MPIDATA_MAX_NDIM> shape_{};
};

/* This rank's membership in the job, from mpidata_init (mpidata_attach) to mpidata_finalize. Cannot be copied or
 * moved. */
class job {
public:
#ifdef MPIDATA_WITHOUT_MPI
    job() { detail::check(mpidata_attach()); }
#else
    /* world: MPI_COMM_WORLD. Collective over it. */
    explicit job(MPI_Comm world) { detail::check(mpidata_init(world, &group_)); }

    /* The communicator of this rank's group, to use in place of MPI_COMM_WORLD. */
    MPI_Comm group() const noexcept { return group_; }
#endif
    job(const job &) = delete;
    job &operator=(const job &) = delete;

    /* Calls mpidata_finalize, unless finalize() was called. During stack unwinding by an exception, ends this rank. */
    ~job() {
        if (left_) return;
        if (std::uncaught_exceptions() > uncaught_) end_rank();
        if (mpidata_finalize() != MPIDATA_SUCCESS) (void)std::fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
    }

    /* mpidata_finalize. Throws its error, which the destructor can only print. */
    void finalize() {
        left_ = true;
        detail::check(mpidata_finalize());
    }

    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = simulation;
        using difference_type = std::ptrdiff_t;
        using pointer = simulation *;
        using reference = simulation &;

        simulation &operator*() const noexcept { return *at_; }
        simulation *operator->() const noexcept { return at_; }
        iterator &operator++() {
            if (!detail::check(mpidata_next(&at_->id_))) at_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(const iterator &other) const noexcept { return at_ == other.at_; }
        bool operator!=(const iterator &other) const noexcept { return at_ != other.at_; }

    private:
        friend class job;
        explicit iterator(simulation *at) noexcept : at_(at) {}
        simulation *at_;
    };

    class range {
    public:
        iterator begin() const { return ++iterator(at_); }
        iterator end() const noexcept { return iterator(nullptr); }

    private:
        friend class job;
        explicit range(simulation *at) noexcept : at_(at) {}
        simulation *at_;
    };

    /* The simulations of this group, one after another. Each increment calls mpidata_next, which is collective over the
     * group. */
    range simulations() noexcept { return range(&simulation_); }

    /* mpidata_refresh. refresh returns false when the job is stopping. */
    int try_refresh(std::int64_t &version) { return mpidata_refresh(&version); }
    bool refresh(std::int64_t &version) { return detail::check(try_refresh(version)); }

    /* mpidata_published, with elements of type T. Throws error, with MPIDATA_ERR_DTYPE if they have another type. */
    template <class T>
    published_array<T> published(const std::string &name) const {
        published_array<T> array;
        mpidata_dtype dtype{};
        const void *values = nullptr;
        const int status = mpidata_published(name.c_str(), &dtype, &array.ndim_, array.shape_.data(), &values);
        if (status == MPIDATA_ERR_AGAIN) return array;
        detail::check(status);
        if (dtype != dtype_of<T>::value)
            throw error(MPIDATA_ERR_DTYPE, "'" + name + "' was published with dtype " + std::to_string(dtype) + ", but is read as " +
                                               std::to_string(dtype_of<T>::value) + " (of mpidata_dtype). Read it as what it is.");
        array.values_ = static_cast<const T *>(values);
        return array;
    }

private:
    [[noreturn]] static void end_rank() {
        (void)std::fprintf(stderr, "mpidata: an exception has left the scope of mpidata::job, so this rank ends, and its simulation is "
                                   "run again. Catch it in that scope to see what it says.\n");
        (void)std::fflush(nullptr);
        std::_Exit(1);
    }

#ifndef MPIDATA_WITHOUT_MPI
    MPI_Comm group_ = MPI_COMM_NULL;
#endif
    simulation simulation_;
    int uncaught_ = std::uncaught_exceptions();
    bool left_ = false;
};

} // namespace mpidata
#endif
