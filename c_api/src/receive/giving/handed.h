/* The message of a sample that one trainer hands to another: a head, the parameters, the numbers (plan_text.h), then the
 * values of each field, including constants. All in whole words of 8 bytes. */
#ifndef MPIDATA_HANDED_H
#define MPIDATA_HANDED_H

#include "buffer/slots.h"

typedef struct {
    uint64_t magic;
    int64_t simulation; /* -1: no more come from this trainer, and nothing follows */
    int64_t step, by_try; /* by_try: of its constants */
    double time;
} mpidata_handed_head;

enum { MPIDATA_HANDED_NO_MORE_WORDS = sizeof(mpidata_handed_head) / sizeof(int64_t) };

/* The words of the message of a sample, or of the message that no more come; to be freed. NULL with an error. */
int64_t *mpidata_handed_pack(const mpidata_slots *slots, const mpidata_slot *slot, int64_t *words);
int64_t *mpidata_handed_pack_no_more(void);

/* Check a message; *head is in it. */
int mpidata_handed_check(const mpidata_plan *plan, const int64_t *message, int64_t words, const mpidata_handed_head **head);

/* Copy the sample of a message that was checked into a slot. */
int mpidata_handed_unpack(mpidata_slots *slots, const int64_t *message, mpidata_slot *slot);

#endif
