/* Stand-in for the solver side of libmpidata: writes every call to the file RECORDER_FILE instead of sending data.
 *
 * Each record is a line of text. After the lines of put, put_block and iput come the array's bytes; their number is the
 * line's last word. RECORDER_SIMULATIONS simulations (1 if unset) have parameters from MPIDATA_PARAM_<NAME>, as outside
 * a job. A field named "refused" gives an error. With -DRECORDER_MPI it also has mpidata_init for C; each rank writes
 * its own file, with the rank added to the name. */
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RECORDER_MPI
#include <mpidata.h>
#else
typedef int mpidata_dtype;
typedef void mpidata_map;
typedef void mpidata_array;
typedef int64_t mpidata_question;
#endif

enum { SUCCESS = 0, END = 1, ERR_ORDER = 2, ERR_FIELD = 4 };

static FILE *out;
static int64_t next_simulation;
static char last_error[512];
static struct {
    char field[64];
    const void *values;
    mpidata_dtype dtype;
    int ndim;
    int64_t shape[6], start[6];
} lent[64];
static int n_lent;

static int open_record(void) {
    char path[4096];
    const char *file = getenv("RECORDER_FILE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    snprintf(path, sizeof path, "%s%s%s", file ? file : "record", rank ? "." : "", rank ? rank : "");
    out = fopen(path, "wb");
    if (!out) perror(path);
    return out ? SUCCESS : ERR_ORDER;
}

static void record(const char *verb, const char *field, const void *values, mpidata_dtype dtype, int ndim,
                   const int64_t *shape, const int64_t *start) {
    const size_t sizes[] = {0, 4, 8, 4, 8, 1, 1, 2, 2, 4, 8, 1, 2, 2, 8, 16}; /* by mpidata_dtype */
    size_t bytes = sizes[dtype];
    fprintf(out, "%s %s %d %d", verb, field, (int)dtype, ndim);
    for (int i = 0; i < ndim; i++) fprintf(out, " %" PRId64, shape[i]), bytes *= (size_t)shape[i];
    for (int i = 0; i < ndim; i++) fprintf(out, " %" PRId64, start ? start[i] : INT64_C(0));
    fprintf(out, " %zu\n", bytes);
    fwrite(values, 1, bytes, out);
    fflush(out);
}

int mpidata_misuse(int status, const char *what, const char *advice) {
    snprintf(last_error, sizeof last_error, "%s. %s", what, advice);
    return status;
}

/* Fields whose name begins with "marker" are uint8. */
int mpidata_declared_dtype(const char *field) { return strncmp(field, "marker", 6) ? 0 : 5; }

static int refused(const char *field) {
    if (strcmp(field, "refused")) return 0;
    snprintf(last_error, sizeof last_error, "The field '%s' is refused. A test. Use another name.", field);
    return 1;
}

int mpidata_init_f(int world, int *group) {
    if (open_record()) return ERR_ORDER;
    fprintf(out, "init %d\n", world);
#ifdef RECORDER_MPI
    *group = world;
#else
    *group = world + 1; /* no MPI: shows only that both numbers are passed on */
#endif
    return SUCCESS;
}

#ifdef RECORDER_MPI
int mpidata_init(MPI_Comm world, MPI_Comm *group) {
    *group = world;
    return open_record();
}
#endif

int mpidata_next(int64_t *simulation) {
    const char *count = getenv("RECORDER_SIMULATIONS");
    if (next_simulation >= (count ? atoi(count) : 1)) return END;
    *simulation = next_simulation++;
    fprintf(out, "next %" PRId64 "\n", *simulation);
    return SUCCESS;
}

int mpidata_param(const char *name, double *value) {
    char key[128] = "MPIDATA_PARAM_";
    size_t n = strlen(key);
    for (; *name && n + 1 < sizeof key; name++) key[n++] = (char)toupper((unsigned char)*name);
    key[n] = 0;
    *value = getenv(key) ? atof(getenv(key)) : 0;
    return SUCCESS;
}

int mpidata_param_text(const char *name, char *text, size_t size) {
    snprintf(text, size, "text of %s", name);
    return strlen(name) + 8 < size ? SUCCESS : ERR_ORDER;
}

int mpidata_put(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape) {
    if (refused(field)) return ERR_FIELD;
    record("put", field, values, dtype, ndim, shape, NULL);
    return SUCCESS;
}

int mpidata_put_block(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                      const int64_t *start) {
    if (refused(field)) return ERR_FIELD;
    record("put_block", field, values, dtype, ndim, shape, start);
    return SUCCESS;
}

/* Jobs test the calls for maps. */
int mpidata_map_known(int64_t n, const int64_t *indices, int64_t base, mpidata_map **map) {
    (void)n, (void)indices, (void)base;
    *map = NULL;
    return ERR_ORDER;
}

int mpidata_put_mapped(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                       const mpidata_map *map) {
    (void)field, (void)values, (void)dtype, (void)ndim, (void)shape, (void)map;
    return ERR_ORDER;
}

int mpidata_put_indices(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                        const mpidata_map *map) {
    return mpidata_put_mapped(field, values, dtype, ndim, shape, map);
}

/* Jobs test published arrays. */
int mpidata_refresh(int64_t *version) {
    *version = 0;
    return SUCCESS;
}

int mpidata_published_as(const char *name, mpidata_dtype dtype, int ndim, int64_t *shape, const void **values) {
    (void)name, (void)dtype, (void)ndim, (void)shape;
    *values = NULL;
    return ERR_ORDER;
}

/* Jobs test questions. */
int mpidata_infer_begin(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version,
                        mpidata_question *question) {
    (void)in, (void)n_in, (void)out, (void)n_out, (void)version, (void)question;
    return ERR_ORDER;
}

int mpidata_infer_wait(mpidata_question *question) {
    (void)question;
    return ERR_ORDER;
}

/* Reads the array only in wait, the latest time at which the library may. */
int mpidata_iput(const char *field, const void *values, mpidata_dtype dtype, int ndim, const int64_t *shape,
                 const int64_t *start) {
    if (refused(field)) return ERR_FIELD;
    snprintf(lent[n_lent].field, sizeof lent[n_lent].field, "%s", field);
    lent[n_lent].values = values;
    lent[n_lent].dtype = dtype;
    lent[n_lent].ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        lent[n_lent].shape[i] = shape[i];
        lent[n_lent].start[i] = start ? start[i] : 0;
    }
    n_lent++;
    return SUCCESS;
}

int mpidata_wait(void) {
    for (int i = 0; i < n_lent; i++)
        record("iput", lent[i].field, lent[i].values, lent[i].dtype, lent[i].ndim, lent[i].shape, lent[i].start);
    n_lent = 0;
    return SUCCESS;
}

int mpidata_wait_for(const void *values) {
    int kept = 0;
    for (int i = 0; i < n_lent; i++) {
        if (lent[i].values == values)
            record("iput", lent[i].field, lent[i].values, lent[i].dtype, lent[i].ndim, lent[i].shape, lent[i].start);
        else
            lent[kept++] = lent[i];
    }
    n_lent = kept;
    return SUCCESS;
}

/* NULL is the default stream; any other is an error. */
int mpidata_device_stream(void *stream) { return stream ? ERR_FIELD : SUCCESS; }

int mpidata_step(double time) {
    fprintf(out, "step %.17g\n", time);
    return SUCCESS;
}

int mpidata_fail(const char *reason) {
    fprintf(out, "fail %s\n", reason);
    return SUCCESS;
}

int mpidata_finalize(void) {
    fprintf(out, "finalize\n");
    return fclose(out) ? ERR_ORDER : SUCCESS;
}

const char *mpidata_strerror(int status) { return status == SUCCESS ? "success" : "an error"; }

const char *mpidata_last_error(void) { return last_error; }
