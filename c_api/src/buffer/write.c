#define _GNU_SOURCE /* pwritev */
#include "buffer/write.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

enum { PIECES_MAX = 256 }; /* of one write */

static int write_pieces(int file, struct iovec *pieces, int n, int64_t *offset) {
    while (n) {
        ssize_t done = pwritev(file, pieces, n, (off_t)*offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        if (done == 0) return ENOSPC;
        *offset += done;
        size_t left = (size_t)done;
        for (; n && left >= pieces->iov_len; pieces++, n--) left -= pieces->iov_len;
        if (!n) break;
        pieces->iov_base = (char *)pieces->iov_base + left;
        pieces->iov_len -= left;
    }
    return 0;
}

/* Adjacent parts are contiguous only if the dimension that varies is the first. */
static int write_joined(const mpidata_slots *slots, int file, int field, const mpidata_slot *slot, int64_t *offset) {
    const mpidata_field *declared = &slots->plan->fields[field];
    const int64_t elements = slot->parts.numbers[declared->length] * declared->row;
    struct iovec piece = {malloc((size_t)elements * declared->element_size + 1), (size_t)elements * declared->element_size};
    if (!piece.iov_base) return ENOMEM;
    char *joined = piece.iov_base;
    mpidata_parts_join_field(&slot->parts, slots->plan, field, joined);
    const int failed = elements ? write_pieces(file, &piece, 1, offset) : 0;
    free(joined);
    return failed;
}

static int write_parts(const mpidata_slots *slots, int file, int field, const mpidata_slot *slot, int64_t *offset) {
    int n, failed = 0;
    const mpidata_part *part = mpidata_parts_of(&slot->parts, field, &n);
    if (!n || (n > 1 && slots->plan->fields[field].varying > 0)) return write_joined(slots, file, field, slot, offset);
    for (const mpidata_part *end = part + n; part < end && !failed; part++) {
        struct iovec piece = {part->values, mpidata_block_bytes(slots->plan, &part->block)};
        if (piece.iov_len) failed = write_pieces(file, &piece, 1, offset);
    }
    return failed;
}

int mpidata_write_field(const mpidata_slots *slots, int file, int field, mpidata_slot *const *list, int64_t count,
                        int64_t offset) {
    const mpidata_field *declared = &slots->plan->fields[field];
    size_t bytes = (size_t)declared->elements * declared->element_size;
    struct iovec pieces[PIECES_MAX];
    int failed = 0;
    for (int64_t i = 0; declared->varying >= 0 && !declared->per_simulation && i < count && !failed; i++) failed = write_parts(slots, file, field, list[i], &offset);
    if (!bytes) return failed;
    for (int64_t done = 0; done < count;) {
        int n = 0;
        for (; n < PIECES_MAX && done < count; n++, done++)
            pieces[n] = (struct iovec){mpidata_slot_field(slots, list[done], field), bytes};
        failed = write_pieces(file, pieces, n, &offset);
        if (failed) return failed;
    }
    return 0;
}
