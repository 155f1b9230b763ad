#include "parcel/parcel_view.h"

#include <string.h>

mpidata_taken mpidata_taken_of(mpidata_parcel *parcel) {
    return (mpidata_taken){
        .parcel = parcel,
        .peer = parcel->peer,
        .dataset = parcel->head.dataset,
        .kind = parcel->head.kind,
        .status = parcel->head.status,
        .number = parcel->head.number,
        .n_parts = parcel->head.n_parts,
        .offsets = parcel->offsets,
        .sizes = parcel->sizes,
        .memory = parcel->memory,
        .bytes = (int64_t)parcel->bytes,
    };
}

int mpidata_parcel_copy(const mpidata_parcel *parcel, char *memory, int64_t room, int64_t *bytes) {
    const size_t n = (size_t)parcel->head.n_parts, list = n * sizeof(int64_t), begin = mpidata_padded(2 * list);
    if (parcel->places || room < 0 || n > (size_t)room / (2 * sizeof(int64_t)) || begin + parcel->bytes > (size_t)room) return 0;
    int64_t *offsets = (int64_t *)(void *)memory;
    memset(memory, 0, begin);
    for (size_t i = 0; i < n; i++) offsets[i] = (int64_t)begin + parcel->offsets[i];
    memcpy(offsets + n, parcel->sizes, list);
    memcpy(memory + begin, parcel->memory, parcel->bytes);
    *bytes = (int64_t)begin + parcel->sizes[0];
    return 1;
}

void mpidata_parcel_release(mpidata_parcel *parcel) { mpidata_parcel_free(parcel); }
