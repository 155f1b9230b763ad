#include "receive/incoming/blocks.h"

#include <stdlib.h>

#include "receive/incoming/pieces.h"
#include "receive/completion.h"

static void count_bytes(mpidata_incoming *in, int64_t bytes) {
    mpidata_lock_take(&in->trainer->lock);
    in->trainer->statistics.bytes += bytes;
    mpidata_lock_give(&in->trainer->lock);
}

static int receive_in_place(mpidata_incoming *in, const mpidata_field *field, const mpidata_block *block, char *target,
                            MPI_Message *message) {
    int64_t offset;
    MPI_Datatype element = mpidata_dtype_mpi(field->dtype), type;
    MPI_Request *request = &in->receives.requests[in->receives.n];
    if (mpidata_block_contiguous(field, block, &offset)) {
        MPIDATA_TRY_MPI(MPI_Imrecv(target + (size_t)offset * field->element_size, (int)mpidata_block_elements(block),
                                   element, message, request));
        return MPIDATA_SUCCESS;
    }
    int sizes[MPIDATA_MAX_NDIM], shape[MPIDATA_MAX_NDIM], start[MPIDATA_MAX_NDIM];
    for (int d = 0; d < field->ndim; d++) {
        sizes[d] = (int)field->shape[d];
        shape[d] = (int)block->shape[d];
        start[d] = (int)block->start[d];
    }
    MPIDATA_TRY_MPI(MPI_Type_create_subarray(field->ndim, sizes, shape, start, MPI_ORDER_C, element, &type));
    MPIDATA_TRY_MPI(MPI_Type_commit(&type));
    int status = mpidata_check_mpi(MPI_Imrecv(target, 1, type, message, request), "MPI_Imrecv");
    MPIDATA_TRY_MPI(MPI_Type_free(&type));
    return status;
}

static int receive_scrap(mpidata_incoming *in, const mpidata_field *field, int elements, MPI_Message *message) {
    char *scrap = malloc((size_t)elements * field->element_size + 1);
    if (!scrap) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for dropping a block");
    int status = mpidata_check_mpi(
        MPI_Imrecv(scrap, elements, mpidata_dtype_mpi(field->dtype), message, &in->receives.requests[in->receives.n]), "MPI_Imrecv");
    if (status) {
        free(scrap);
        return status;
    }
    mpidata_receives_add(&in->receives, NULL, scrap);
    return MPIDATA_SUCCESS;
}

int mpidata_receive_block(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    const mpidata_expected_block *of = &source->blocks[source->next++];
    const mpidata_block *block = &of->block;
    const mpidata_field *field = &in->trainer->job.plan.fields[block->field];
    int elements = 0;
    int64_t expected = mpidata_block_elements(block);
    MPIDATA_TRY_MPI(MPI_Get_count(status, mpidata_dtype_mpi(field->dtype), &elements));
    if (elements != expected)
        return mpidata_error(MPIDATA_ERR_WIRE, "A block of field '%s' has %d elements instead of the announced %lld",
                             field->name, elements, (long long)expected);
    MPIDATA_TRY(mpidata_receives_reserve(&in->receives));
    if (!source->assembly) return receive_scrap(in, field, elements, message);
    if (of->part >= 0)
        MPIDATA_TRY_MPI(MPI_Imrecv(source->assembly->parts->list[of->part].values, elements, mpidata_dtype_mpi(field->dtype),
                                   message, &in->receives.requests[in->receives.n]));
    else
        MPIDATA_TRY(receive_in_place(in, field, block, mpidata_assembly_field(&in->trainer->slots, source->assembly, block->field), message));
    mpidata_receives_add(&in->receives, source->assembly, NULL);
    source->assembly->under_way++;
    count_bytes(in, expected * (int64_t)field->element_size);
    return MPIDATA_SUCCESS;
}

static int block_ended(mpidata_incoming *in, const mpidata_receive *ended) {
    free(ended->scrap);
    mpidata_assembly *assembly = ended->assembly;
    if (!assembly) return MPIDATA_SUCCESS;
    assembly->under_way--;
    if (!ended->failed) assembly->outstanding--;
    if (!assembly->lost) return ended->failed ? MPIDATA_SUCCESS : mpidata_finish_if_whole(in, assembly);
    if (assembly->under_way) return MPIDATA_SUCCESS;
    mpidata_lock_take(&in->trainer->lock);
    mpidata_drop_assembly_locked(in->trainer, &in->assemblies, assembly);
    mpidata_lock_give(&in->trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_complete_blocks(mpidata_incoming *in, int *did) {
    int n_ended;
    MPIDATA_TRY(mpidata_receives_test(&in->receives, &n_ended));
    if (n_ended) *did = 1;
    for (int i = 0; i < n_ended; i++) MPIDATA_TRY(block_ended(in, &in->receives.ended[i]));
    return MPIDATA_SUCCESS;
}
