#define _GNU_SOURCE /* pwritev */
#include "buffer/write.h"

#include <errno.h>
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

int mpidata_write_field(const mpidata_slots *slots, int file, int field, mpidata_slot *const *list, int64_t count,
                        int64_t offset) {
    const mpidata_field *declared = &slots->plan->fields[field];
    size_t bytes = (size_t)declared->elements * declared->element_size;
    struct iovec pieces[PIECES_MAX];
    if (!bytes) return 0;
    for (int64_t done = 0; done < count;) {
        int n = 0;
        for (; n < PIECES_MAX && done < count; n++, done++)
            pieces[n] = (struct iovec){mpidata_slot_field(slots, list[done], field), bytes};
        int failed = write_pieces(file, pieces, n, &offset);
        if (failed) return failed;
    }
    return 0;
}
