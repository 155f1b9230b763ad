#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "carried/published_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Mapped at the place of the previous version, which has the same size, so that kept addresses stay valid. */
int mpidata_published_memory_take(mpidata_published_memory *published, int memory, uint64_t bytes) {
    struct stat status;
    if (fstat(memory, &status) || (uint64_t)status.st_size != bytes)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_refresh: the carrier's memory does not have the announced size.");
    const int again = published->contents && published->bytes == bytes;
    void *mapped = mmap(again ? published->contents : NULL, (size_t)bytes, PROT_READ, again ? MAP_SHARED | MAP_FIXED : MAP_SHARED,
                        memory, 0);
    if (mapped == MAP_FAILED)
        return mpidata_error(MPIDATA_ERR_MEMORY, "mpidata_refresh: cannot map %llu bytes of the carrier's memory: %s.",
                             (unsigned long long)bytes, strerror(errno));
    published->contents = NULL;
    if (mpidata_contents_check(mapped, (size_t)bytes) || ((const mpidata_contents *)mapped)->described)
        return mpidata_error(MPIDATA_ERR_JOB, "mpidata_refresh: the carrier's memory does not hold published arrays. Use one "
                                              "version of mpidata.");
    *published = (mpidata_published_memory){mapped, (size_t)bytes};
    return MPIDATA_SUCCESS;
}
