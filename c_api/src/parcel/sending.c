#include "parcel/sending.h"

#include <stdlib.h>
#include <string.h>

#include "containers/list.h"

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for sending a parcel."); }

static int copy_rest(mpidata_sending *sending) {
    mpidata_parcel_rest rest = mpidata_parcel_begin_rest(sending->sizes, sending->n_parts);
    mpidata_parcel_rest again = rest;
    int64_t part, at;
    size_t in_all = 0;
    int bytes;
    while (mpidata_parcel_has_rest(&rest)) {
        mpidata_parcel_next(&rest, &part, &at, &bytes);
        in_all += (size_t)bytes;
    }
    if (!in_all) return MPIDATA_SUCCESS;
    if (!(sending->copies = malloc(in_all))) return no_memory();
    for (char *to = sending->copies; mpidata_parcel_has_rest(&again); to += bytes) {
        mpidata_parcel_next(&again, &part, &at, &bytes);
        memcpy(to, sending->parts[part] + at, (size_t)bytes);
        if (at + bytes == sending->sizes[part]) sending->parts[part] = to + bytes - sending->sizes[part];
    }
    return MPIDATA_SUCCESS;
}

int mpidata_sending_new(const mpidata_parcel_head *head, const int64_t *sizes, const void *const *parts, int copies,
                        mpidata_sending **sending) {
    if (head->n_parts < 1 || head->n_parts > MPIDATA_PARTS_MAX)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "A parcel has %lld parts. At most %d are possible.",
                             (long long)head->n_parts, MPIDATA_PARTS_MAX);
    const size_t n = (size_t)head->n_parts, first_bytes = mpidata_parcel_first_bytes(sizes, head->n_parts);
    mpidata_sending *made = malloc(sizeof *made + n * (sizeof *sizes + sizeof *parts) + first_bytes); /* one block, for speed */
    if (!made) return no_memory();
    *made = (mpidata_sending){.n_parts = head->n_parts, .first_bytes = first_bytes, .sizes = (int64_t *)(made + 1)};
    made->parts = (const char **)(made->sizes + n);
    made->first = (char *)(made->parts + n);
    memcpy(made->sizes, sizes, n * sizeof *sizes);
    memcpy(made->parts, parts, n * sizeof *parts);
    mpidata_parcel_write_first(head, sizes, parts, made->first);
    const int status = copies ? copy_rest(made) : MPIDATA_SUCCESS;
    if (status) {
        mpidata_sending_free(made);
        return status;
    }
    *sending = made;
    return MPIDATA_SUCCESS;
}

void mpidata_sending_free(mpidata_sending *sending) {
    free(sending->copies);
    free(sending);
}

int mpidata_sending_begin(mpidata_sending *sending, mpidata_transfers *transfers, int rank, int tag, MPI_Comm comm) {
    mpidata_parcel_rest rest = mpidata_parcel_begin_rest(sending->sizes, sending->n_parts);
    mpidata_pending *pending = &sending->pending;
    MPIDATA_TRY(mpidata_transfers_send(transfers, sending->first, (int)sending->first_bytes, rank, tag, comm, pending));
    while (mpidata_parcel_has_rest(&rest) && !pending->failed) {
        int64_t part, at;
        int bytes;
        mpidata_parcel_next(&rest, &part, &at, &bytes);
        MPIDATA_TRY(mpidata_transfers_send(transfers, sending->parts[part] + at, bytes, rank, tag, comm, pending));
    }
    return MPIDATA_SUCCESS;
}

void mpidata_sendings_append(mpidata_sending_list *list, mpidata_sending *sending) {
    MPIDATA_LIST_APPEND(list, sending);
}

mpidata_sending *mpidata_sendings_pop(mpidata_sending_list *list) {
    mpidata_sending *sending;
    MPIDATA_LIST_POP(list, sending);
    return sending;
}

void mpidata_sendings_move_ended(mpidata_sending_list *list, mpidata_sending_list *ended) {
    mpidata_sending_list kept = {0};
    for (mpidata_sending *sending; (sending = mpidata_sendings_pop(list));)
        mpidata_sendings_append(sending->pending.left ? &kept : ended, sending);
    *list = kept;
}

void mpidata_sendings_free(mpidata_sending_list *list) {
    for (mpidata_sending *sending; (sending = mpidata_sendings_pop(list));) mpidata_sending_free(sending);
}
