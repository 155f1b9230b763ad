#include <math.h>
#include <string.h>

#include "check.h"
#include "example_plan.h"
#include "wire.h"

static double memory[512]; /* aligned as a message is */
static mpidata_plan plan;

static mpidata_piece *piece_of(void) { return (mpidata_piece *)(void *)memory; }
static mpidata_block *block_of(void) {
    return (mpidata_block *)(void *)((char *)memory + sizeof(mpidata_piece) + (size_t)plan.n_parameters * sizeof(double));
}

/* One whole 'temperature' inline. */
static size_t valid(void) {
    mpidata_piece piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = 1, .simulation = 3, .step = 4, .time = 0.5,
                           .inline_bytes = 128, .turn = 1};
    mpidata_block block = {.field = 0, .ndim = 2, .shape = {4, 6}};
    size_t header = mpidata_piece_header_bytes(plan.n_parameters, 1);
    memset(memory, 0, sizeof memory);
    memcpy(memory, &piece, sizeof piece);
    memcpy(block_of(), &block, sizeof block);
    return header + 128; /* 24 float32, padded */
}

static int check(size_t bytes) {
    const mpidata_piece *piece;
    const double *parameters;
    const mpidata_block *blocks;
    const char *payload;
    return mpidata_piece_check(&plan, memory, bytes, &piece, &parameters, &blocks, &payload);
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    CHECK(check(valid()) == MPIDATA_SUCCESS);
    CHECK(check(valid() - 1) == MPIDATA_ERR_WIRE);
    CHECK(check(valid() + 64) == MPIDATA_SUCCESS); /* another piece behind it */
    CHECK(check(8) == MPIDATA_ERR_WIRE);
    size_t bytes = valid();
    piece_of()->magic = 1;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->inline_bytes = 0; /* a large piece: nothing may follow its header */
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    CHECK(check(mpidata_piece_header_bytes(plan.n_parameters, 1)) == MPIDATA_SUCCESS);
    (void)valid();
    piece_of()->n_blocks = 1 << 30;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->n_blocks = 0;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->turn = 0;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->simulation = 13;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->step = -1;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->time = NAN;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    block_of()->field = 3;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    block_of()->ndim = 1;
    CHECK(check(bytes) == MPIDATA_ERR_SHAPE);
    (void)valid();
    block_of()->start[1] = 1;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    block_of()->shape[0] = INT64_MAX;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    block_of()->shape[0] = 2; /* fewer elements than the message has */
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    mpidata_plan_free(&plan);
    return 0;
}
