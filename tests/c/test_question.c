/* The contents of questions, their description, and what solver ranks learn of inference ranks. No MPI. */
#include "question/description.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "job/answerers.h"
#include "question/in_memory.h"
#include "wire/messages.h"

static const int64_t shape[] = {2, 3}, rows[] = {2}, others[] = {3, 3}, negative[] = {2, -1}, none[] = {0, 3};
static double values[6];

static int refused(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int status,
                   const char *said) {
    const char *advice = NULL;
    return mpidata_question_check(in, n_in, out, n_out, &advice) == status && strstr(mpidata_last_error(), said) &&
           advice;
}

static void wrong_ones_are_refused(void) {
    const char *advice;
    const mpidata_array x = {"x", values, MPIDATA_FLOAT64, 2, shape}, y = {"y", values, MPIDATA_FLOAT64, 1, rows};
    const mpidata_array more = {"m", values, MPIDATA_FLOAT64, 2, others},
        less = {"l", values, MPIDATA_FLOAT64, 2, negative};
    const mpidata_array scalar = {"c", values, MPIDATA_FLOAT64, 0, NULL},
        unnamed = {"", values, MPIDATA_FLOAT64, 1, rows};
    const mpidata_array odd = {"o", values, (mpidata_dtype)77, 1, rows},
        nowhere = {"n", NULL, MPIDATA_FLOAT64, 1, rows};
    const mpidata_array nothing = {"x", NULL, MPIDATA_FLOAT64, 2, none},
        nothing_out = {"y", NULL, MPIDATA_FLOAT64, 2, none};
    const mpidata_array twice[] = {x, x};
    CHECK(mpidata_question_check(&x, 1, &y, 1, &advice) == MPIDATA_SUCCESS);
    CHECK(mpidata_question_check(&nothing, 1, &nothing_out, 1, &advice) == MPIDATA_SUCCESS);
    CHECK(refused(&x, 0, &y, 1, MPIDATA_ERR_ARGUMENT, "0 arrays in and 1 out"));
    CHECK(refused(&x, 1, NULL, 1, MPIDATA_ERR_ARGUMENT, "1 arrays in"));
    CHECK(refused(&x, 1, &more, 1, MPIDATA_ERR_SHAPE, "has 3 rows, the first one has 2"));
    CHECK(refused(&less, 1, &y, 1, MPIDATA_ERR_SHAPE, "has extent -1 in dimension 1"));
    CHECK(refused(&scalar, 1, &y, 1, MPIDATA_ERR_SHAPE, "has 0 dimensions"));
    CHECK(refused(&unnamed, 1, &y, 1, MPIDATA_ERR_ARGUMENT, "has no name"));
    CHECK(refused(&odd, 1, &y, 1, MPIDATA_ERR_DTYPE, "has dtype 77"));
    CHECK(refused(&nowhere, 1, &y, 1, MPIDATA_ERR_ARGUMENT, "is NULL"));
    CHECK(refused(twice, 2, &y, 1, MPIDATA_ERR_ARGUMENT, "Two arrays of a question have the name 'x'"));
}

static void a_description_has_all_arrays(void) {
    size_t bytes;
    const mpidata_array x = {"x", values, MPIDATA_FLOAT64, 2, shape}, y = {"y", values, MPIDATA_FLOAT32, 1, rows};
    mpidata_description *made = mpidata_describe(&x, 1, &y, 1, &bytes);
    CHECK(made && bytes == sizeof *made + 2 * sizeof(mpidata_described));
    CHECK(made->magic == MPIDATA_QUESTION_MAGIC && made->n_in == 1 && made->n_out == 1 && made->rows == 2);
    const mpidata_described *described = (const mpidata_described *)(made + 1);
    CHECK(!strcmp(described[0].name, "x") && described[0].ndim == 2 && described[0].shape[1] == 3);
    CHECK(!strcmp(described[1].name, "y") && described[1].dtype == MPIDATA_FLOAT32 && described[1].shape[0] == 2);
    CHECK(mpidata_array_bytes(&x) == 48 && mpidata_array_bytes(&y) == 8);
    free(made);
}

/* A question is written, and read by another process, which does not trust it. */
static void one_in_memory_is_checked(void) {
    uint64_t at[2 * MPIDATA_ARRAYS_MAX];
    static mpidata_read_question read;
    const mpidata_array in[] = {{"x", values, MPIDATA_FLOAT64, 2, shape}, {"n", values, MPIDATA_FLOAT64, 1, rows}};
    const mpidata_array out[] = {{"y", values, MPIDATA_FLOAT32, 1, rows}};
    const uint64_t bytes = mpidata_question_lay_out(in, 2, out, 1, at);
    const uint64_t described = sizeof(mpidata_description) + 3 * sizeof(mpidata_described);
    CHECK(at[0] >= described && at[0] % 64 == 0 && at[1] == at[0] + 64 && at[2] == at[1] + 64 && bytes == at[2] + 64);
    char *memory = calloc(1, bytes), *kept = malloc(bytes);
    CHECK(memory && kept);
    for (int i = 0; i < 6; i++) values[i] = i + 1;
    CHECK(mpidata_question_write(memory, in, 2, out, 1, at) == MPIDATA_SUCCESS);
    CHECK(!memcmp(memory + at[0], values, sizeof values) && !memcmp(memory + at[1], values, 16));
    memcpy(kept, memory, bytes);
    CHECK(mpidata_question_read(memory, bytes, &read) == MPIDATA_SUCCESS && read.head.n_in == 2 && read.head.n_out == 1);
    CHECK(!strcmp(read.arrays[1].name, "n") && read.arrays[1].values == memory + at[1] && read.arrays[2].values == memory + at[2]);
    CHECK(read.arrays[0].ndim == 2 && read.arrays[0].shape[1] == 3 && read.arrays[2].dtype == MPIDATA_FLOAT32);
    for (uint64_t less = 0; less < bytes; less += 8) CHECK(mpidata_question_read(memory, less, &read) == MPIDATA_ERR_WIRE);
    for (uint64_t byte = 0; byte < described; byte++) /* no changed byte leads to a read outside the memory */
        for (int bit = 0; bit < 8; bit++) {
            memory[byte] = (char)(memory[byte] ^ (1 << bit));
            if (!mpidata_question_read(memory, bytes, &read))
                for (int i = 0; i < read.head.n_in + read.head.n_out; i++)
                    CHECK((char *)read.arrays[i].values - memory + (ptrdiff_t)mpidata_array_bytes(&read.arrays[i]) <= (ptrdiff_t)bytes);
            memory[byte] = kept[byte];
        }
    free(memory);
    free(kept);
}

static void those_that_live_are_asked_in_turn(void) {
    mpidata_answerers answerers = {0};
    CHECK(mpidata_answerers_next(&answerers, 5) == -1 && !mpidata_answerer_lives(&answerers, 0));
    for (int number = 0; number < 3; number++) {
        const int32_t word = mpidata_answerer_word(number, number == 1);
        CHECK(word < 0 && mpidata_answerer_number(word) == number && mpidata_answerer_is_lost(word) == (number == 1));
        CHECK(mpidata_answerers_hear(&answerers, mpidata_answerer_word(number, 0)) == MPIDATA_SUCCESS);
    }
    CHECK(mpidata_answerers_next(&answerers, 0) == 1 && mpidata_answerers_next(&answerers, 2) == 0);
    CHECK(mpidata_answerers_hear(&answerers, mpidata_answerer_word(1, 1)) == MPIDATA_SUCCESS);
    CHECK(mpidata_answerers_hear(&answerers, mpidata_answerer_word(1, 0)) == MPIDATA_SUCCESS);
    CHECK(mpidata_answerers_next(&answerers, 0) == 2 && mpidata_answerers_next(&answerers, 2) == 0);
    CHECK(mpidata_answerers_hear(&answerers, mpidata_answerer_word(1 << 21, 0)) == MPIDATA_ERR_WIRE);
    mpidata_answerers_close(&answerers);
}

int main(void) {
    wrong_ones_are_refused();
    a_description_has_all_arrays();
    one_in_memory_is_checked();
    those_that_live_are_asked_in_turn();
    return 0;
}
