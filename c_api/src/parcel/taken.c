#include "parcel/taken.h"

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

void mpidata_parcel_release(mpidata_parcel *parcel) { mpidata_parcel_free(parcel); }
