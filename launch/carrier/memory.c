/* Memory that the carrier shares with its program: whether there is enough, and memory with the published arrays. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "carrier.h"
#include "system/available_memory.h"

int memory_check(const ranks_t *ranks) {
    /* All ranks together put each field once, and any slot may hold constants. */
    const double wanted = (double)ranks->slots * (double)ranks->sample_bytes;
    int limited;
    const int64_t available = mpidata_available_memory("/proc", "/sys/fs/cgroup", &limited);
    if (available < 0 || wanted <= (double)available) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_MEMORY, "A carried program and its carrier share memory for %u samples, %.1f GB, but %s "
                                             "%.1f GB. %s. Lower solvers.in_flight, or at_most of the lengths, in the job "
                                             "file, or give the job more memory.", (unsigned)ranks->slots, wanted / 1e9,
                         limited ? "the limit of the job's control group leaves" : "this host has", (double)available / 1e9,
                         ranks->who);
}

static int cannot(int memory, int64_t bytes) {
    const int why = errno;
    if (memory >= 0) (void)close(memory);
    return mpidata_error(MPIDATA_ERR_MEMORY, "Cannot make %lld bytes of memory for the published arrays: %s. Give the job "
                                             "more memory.",
                         (long long)bytes, strerror(why));
}

/* Make read-only memory, which all ranks here share. */
static int fill(ranks_t *ranks, const mpidata_contents *published) {
    const int memory = memfd_create("mpidata-published", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0) return cannot(memory, published->bytes);
    for (int64_t at = 0; at < published->bytes;) {
        const ssize_t n = write(memory, (const char *)published + at, (size_t)(published->bytes - at));
        if (n < 0 && errno != EINTR) return cannot(memory, published->bytes);
        at += n > 0 ? n : 0;
    }
    if (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)) return cannot(memory, published->bytes);
    if (ranks->version) (void)close(ranks->published);
    ranks->published = memory;
    ranks->version = published->version;
    return MPIDATA_SUCCESS;
}

int memory_share(ranks_t *ranks, const mpidata_contents *published) {
    if (ranks->version != published->version) MPIDATA_TRY(fill(ranks, published));
    for (int i = 0; i < ranks->n; i++) {
        rank_t *rank = &ranks->all[i];
        if (!rank->asks || rank->version == ranks->version) continue;
        if (!ranks_send(rank, &(char){MPIDATA_CARRIED_PUBLISHED}, 1, ranks->published)) continue; /* its end is found elsewhere */
        rank->shared->published = (uint64_t)published->bytes;
        rank->version = ranks->version;
    }
    return MPIDATA_SUCCESS;
}
