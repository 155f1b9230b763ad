#include "wire/moments.h"

#include <math.h>
#include <string.h>

#include "wire/float16.h"
#include "program/caller.h"

enum { LANES = MPIDATA_MOMENTS_LANES, LONGEST = MPIDATA_MOMENTS_LONGEST, WORTH_GATHERING = MPIDATA_MOMENTS_GATHERED };
static const double GREATEST = 1e150; /* whose square, and sums of it, are finite */
static const double CANCELLED = 1e-2; /* share of the squares that must remain after the mean's is subtracted */

typedef struct {
    double sum, squares; /* of the differences from `about` */
    double least, greatest;
} sums;

void mpidata_moments_clear(mpidata_moments *moments, int64_t n) {
    for (int64_t i = 0; i < n; i++) moments[i] = (mpidata_moments){.least = INFINITY, .greatest = -INFINITY};
}

static void merge_one(mpidata_moments *into, const mpidata_moments *from) {
    into->not_finite += from->not_finite;
    if (from->count <= 0) return;
    double count = into->count + from->count, apart = from->mean - into->mean;
    into->m2 += from->m2 + apart * apart * (into->count * from->count / count);
    into->mean = into->count > 0 ? into->mean + apart * (from->count / count) : from->mean;
    into->count = count;
    into->least = fmin(into->least, from->least);
    into->greatest = fmax(into->greatest, from->greatest);
}

MPIDATA_OUT_OF_LINE void mpidata_moments_merge(mpidata_moments *into, const mpidata_moments *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) merge_one(&into[i], &from[i]);
}

/* Independent lanes, so that the compiler can vectorize without changing the order of any sum. */
#define SUM_BODY(type)                                                                                      \
    double sum[LANES] = {0}, squares[LANES] = {0};                                                          \
    type least[LANES], greatest[LANES];                                                                     \
    for (int l = 0; l < LANES; l++) least[l] = greatest[l] = values[0];                                     \
    int64_t whole = n / LANES * LANES;                                                                      \
    for (int64_t i = 0; i < whole; i += LANES)                                                              \
        for (int l = 0; l < LANES; l++) {                                                                   \
            type value = values[i + l];                                                                     \
            double apart = (double)value - about;                                                           \
            sum[l] += apart;                                                                                \
            squares[l] += apart * apart;                                                                    \
            least[l] = value < least[l] ? value : least[l];                                                 \
            greatest[l] = value > greatest[l] ? value : greatest[l];                                        \
        }                                                                                                   \
    for (int64_t i = whole; i < n; i++) {                                                                   \
        type value = values[i];                                                                             \
        double apart = (double)value - about;                                                               \
        sum[0] += apart;                                                                                    \
        squares[0] += apart * apart;                                                                        \
        least[0] = value < least[0] ? value : least[0];                                                     \
        greatest[0] = value > greatest[0] ? value : greatest[0];                                            \
    }                                                                                                       \
    *all = (sums){0, 0, (double)least[0], (double)greatest[0]};                                             \
    for (int l = 0; l < LANES; l++) {                                                                       \
        all->sum += sum[l];                                                                                 \
        all->squares += squares[l];                                                                         \
        all->least = fmin(all->least, (double)least[l]);                                                    \
        all->greatest = fmax(all->greatest, (double)greatest[l]);                                           \
    }

#define LOAD_BODY(type)                                                                                     \
    const type *from = values;                                                                              \
    for (int64_t i = 0; i < n; i++) to[i] = (double)from[i * stride];

/* The instructions that most processors have are twice as fast; not by target_clones, which chooses before the sanitizers' run
 * time is initialised. */
#if defined __x86_64__ && defined __GNUC__
#define WIDE __attribute__((target("avx2,fma")))
#define HAS_WIDE __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
#else
#define WIDE
#define HAS_WIDE 0
#endif

#define FUNCTIONS_DIRECT(name, type)                                                                        \
    static void sum_##name(const void *of, int64_t n, double about, sums *all) {                            \
        const type *values = of;                                                                            \
        SUM_BODY(type)                                                                                      \
    }                                                                                                       \
    WIDE static void wide_sum_##name(const void *of, int64_t n, double about, sums *all) {                  \
        const type *values = of;                                                                            \
        SUM_BODY(type)                                                                                      \
    }                                                                                                       \
    static void load_##name(const void *values, int64_t n, int64_t stride, double *to) { LOAD_BODY(type) }

#define FUNCTIONS_WIDENED(name, type)                                                                       \
    static void load_##name(const void *values, int64_t n, int64_t stride, double *to) {                    \
        const type *from = values;                                                                          \
        for (int64_t i = 0; i < n; i++) to[i] = mpidata_##name##_as_float64(from[i * stride]);              \
    }

#define FUNCTIONS_NO(name, type)

#define FUNCTIONS_OF(in_c, name, type, kind, in_mpi, moments) FUNCTIONS_##moments(name, type)
MPIDATA_DTYPES(FUNCTIONS_OF)

typedef struct {
    size_t size;
    void (*sum)(const void *, int64_t, double, sums *), (*wide_sum)(const void *, int64_t, double, sums *); /* or NULL */
    void (*load)(const void *, int64_t, int64_t, double *);
} type_functions;

#define ENTRY_DIRECT(name, type) {sizeof(type), sum_##name, wide_sum_##name, load_##name},
#define ENTRY_WIDENED(name, type) {sizeof(type), NULL, NULL, load_##name},
#define ENTRY_NO(name, type) {0, NULL, NULL, NULL},
#define ENTRY(in_c, name, type, kind, in_mpi, moments) ENTRY_##moments(name, type)
static const type_functions TYPES[] = {MPIDATA_DTYPES(ENTRY)}; /* by mpidata_dtype, which begins at 1 */
static const type_functions GATHERED = {sizeof(double), sum_float64, wide_sum_float64, load_float64};

/* One by one, if some are not finite. */
static void add_each(const double *values, int64_t n, mpidata_moments *moments) {
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(values[i]) <= GREATEST)) {
            moments->not_finite++;
            continue;
        }
        mpidata_moments one = {.count = 1, .mean = values[i], .least = values[i], .greatest = values[i]};
        merge_one(moments, &one);
    }
}

static sums sums_of(const type_functions *type, const char *values, int64_t n, double about) {
    sums all;
    if (HAS_WIDE)
        type->wide_sum(values, n, about, &all);
    else
        type->sum(values, n, about, &all);
    return all;
}

/* A run of up to LONGEST contiguous values: about the first one, or, if that is far from the others, about the mean. */
static void add_run(const type_functions *type, const char *values, int64_t n, mpidata_moments *moments) {
    double about, count = (double)n, loaded[LONGEST];
    type->load(values, 1, 1, &about);
    sums all = sums_of(type, values, n, about);
    if (!(isfinite(all.squares) && all.least >= -GREATEST && all.greatest <= GREATEST)) {
        type->load(values, n, 1, loaded);
        add_each(loaded, n, moments);
        return;
    }
    if (all.squares - all.sum * (all.sum / count) < CANCELLED * all.squares) {
        about += all.sum / count;
        all = sums_of(type, values, n, about);
    }
    double mean = all.sum / count, m2 = all.squares - all.sum * mean;
    mpidata_moments run = {.count = count, .mean = about + mean, .m2 = fmax(m2, 0.0), .least = all.least, .greatest = all.greatest};
    merge_one(moments, &run);
}

static void add_widened(const type_functions *type, const char *values, int64_t n, mpidata_moments *moments) {
    double loaded[LONGEST];
    for (int64_t i = 0; i < n; i += LONGEST) {
        const int64_t run = n - i < LONGEST ? n - i : LONGEST;
        type->load(values + (size_t)i * type->size, run, 1, loaded);
        add_run(&GATHERED, (const char *)loaded, run, moments);
    }
}

static void add_contiguous(const type_functions *type, const char *values, int64_t n, mpidata_moments *moments) {
    if (!type->sum) {
        add_widened(type, values, n, moments);
        return;
    }
    for (int64_t i = 0; i < n; i += LONGEST)
        add_run(type, values + (size_t)i * type->size, n - i < LONGEST ? n - i : LONGEST, moments);
}

/* Values of one channel in runs of `inner` contiguous ones, `stride` apart: gathered first, because sums of short runs would
 * cost more. */
static void add_scattered(const type_functions *type, const char *values, int64_t outer, int64_t stride, int64_t inner,
                          mpidata_moments *moments) {
    double gathered[LONGEST];
    for (int64_t o = 0, at_once = LONGEST / inner; o < outer; o += at_once) {
        int64_t runs = outer - o < at_once ? outer - o : at_once;
        const char *first = values + (size_t)(o * stride) * type->size;
        for (int64_t i = 0; i < runs && inner >= LANES; i++)
            type->load(first + (size_t)(i * stride) * type->size, inner, 1, gathered + i * inner);
        for (int64_t i = 0; i < inner && inner < LANES; i++)
            type->load(first + (size_t)i * type->size, runs, stride, gathered + i * runs);
        add_run(&GATHERED, (const char *)gathered, runs * inner, moments);
    }
}

MPIDATA_OUT_OF_LINE void mpidata_moments_of(unsigned dtype, const void *values, int64_t outer, int64_t channels, int64_t inner,
                        mpidata_moments *moments) {
    const type_functions *type = &TYPES[dtype - 1];
    mpidata_moments_clear(moments, channels);
    if (!outer || !inner) return;
    if (channels == 1) {
        add_contiguous(type, values, outer * inner, moments);
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        const char *of_channel = (const char *)values + (size_t)(c * inner) * type->size;
        if (inner < WORTH_GATHERING) {
            add_scattered(type, of_channel, outer, channels * inner, inner, &moments[c]);
            continue;
        }
        for (int64_t o = 0; o < outer; o++)
            add_contiguous(type, of_channel + (size_t)(o * channels * inner) * type->size, inner, &moments[c]);
    }
}

void mpidata_moments_of_block(const mpidata_field *field, const int64_t *shape, const void *values,
                              mpidata_moments *moments) {
    int64_t outer = 1, inner = 1, channels = field->channel_axis < 0 ? 1 : shape[field->channel_axis];
    for (int d = 0; d < field->ndim; d++) {
        if (d < field->channel_axis) outer *= shape[d];
        if (d > field->channel_axis) inner *= shape[d];
    }
    mpidata_moments_of(field->dtype, values, outer, channels, inner, moments);
}

int mpidata_moments_possible(const mpidata_moments *moments, int64_t values) {
    if (!(moments->count >= 0 && moments->not_finite >= 0 && moments->count + moments->not_finite == (double)values)) return 0;
    if (moments->count == 0) return moments->m2 == 0 && moments->mean == 0;
    return moments->m2 >= 0 && isfinite(moments->m2) && moments->least >= -GREATEST && moments->greatest <= GREATEST &&
           moments->least <= moments->greatest && moments->mean >= -GREATEST && moments->mean <= GREATEST;
}
