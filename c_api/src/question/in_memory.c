#include "question/in_memory.h"

#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

static const uint64_t MOST_MEMORY = (uint64_t)1 << 60;

static int place_arrays(const mpidata_array *arrays, int n, uint64_t *end, uint64_t *at) {
    for (int i = 0; i < n; i++) {
        at[i] = *end;
        *end = mpidata_padded(*end + mpidata_array_bytes(&arrays[i])); /* which were checked to be at most 2^60 */
        if (*end > MOST_MEMORY) return 0;
    }
    return 1;
}

uint64_t mpidata_question_lay_out(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, uint64_t *at) {
    uint64_t end = mpidata_padded(sizeof(mpidata_description) + (size_t)(n_in + n_out) * sizeof(mpidata_described));
    return place_arrays(in, n_in, &end, at) && place_arrays(out, n_out, &end, at + n_in) ? end : UINT64_MAX;
}

int mpidata_question_write(char *memory, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, const uint64_t *at) {
    size_t bytes;
    mpidata_description *description = mpidata_describe(in, n_in, out, n_out, &bytes);
    if (!description) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a question.");
    memcpy(memory, description, bytes);
    free(description);
    for (int i = 0; i < n_in; i++) {
        const size_t size = mpidata_array_bytes(&in[i]);
        if (size) memcpy(memory + at[i], in[i].values, size);
    }
    return MPIDATA_SUCCESS;
}

static int is_no_question(void) { return mpidata_error(MPIDATA_ERR_WIRE, "A question of the carried program is invalid"); }

/* The description, copied before it is checked. */
static int copy_description(const char *memory, uint64_t bytes, mpidata_read_question *question) {
    if (bytes < sizeof question->head) return is_no_question();
    memcpy(&question->head, memory, sizeof question->head);
    const int n_in = question->head.n_in, n_out = question->head.n_out;
    if (question->head.magic != MPIDATA_QUESTION_MAGIC || n_in < 1 || n_out < 1 || n_in > MPIDATA_ARRAYS_MAX || n_out > MPIDATA_ARRAYS_MAX)
        return is_no_question();
    const size_t rest = (size_t)(n_in + n_out) * sizeof *question->described;
    if (bytes - sizeof question->head < rest) return is_no_question();
    memcpy(question->described, memory + sizeof question->head, rest);
    return MPIDATA_SUCCESS;
}

int mpidata_question_read(char *memory, uint64_t bytes, mpidata_read_question *question) {
    const char *advice;
    uint64_t at[2 * MPIDATA_ARRAYS_MAX];
    MPIDATA_TRY(copy_description(memory, bytes, question));
    const int n_in = question->head.n_in, n_out = question->head.n_out;
    for (int i = 0; i < n_in + n_out; i++) {
        mpidata_described *one = &question->described[i];
        one->name[sizeof one->name - 1] = '\0';
        question->arrays[i] = (mpidata_array){one->name, memory, (mpidata_dtype)one->dtype, one->ndim, one->shape};
    }
    mpidata_array *out = question->arrays + n_in;
    if (mpidata_question_check(question->arrays, n_in, out, n_out, &advice)) return is_no_question();
    if (mpidata_question_lay_out(question->arrays, n_in, out, n_out, at) > bytes) return is_no_question();
    for (int i = 0; i < n_in + n_out; i++) question->arrays[i].values = memory + at[i];
    return MPIDATA_SUCCESS;
}
