/* Parcels come whole for all sizes of parts and orders of messages, also if a sender dies meanwhile. */
#include "fake_mpi.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"
#include "parcel/parcel_view.h"

enum { TAG = 8, RANKS = 4, MOST_PARTS = 40 };

static const int peers[RANKS] = {-1, -1, 7, 9};
static mpidata_transfers transfers;
static uint64_t state = 1;

static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)below);
}

typedef struct {
    int64_t n, sizes[MOST_PARTS];
    unsigned char *parts[MOST_PARTS];
} contents;

static contents draw_contents(int64_t n, int64_t below) {
    contents made = {.n = n};
    for (int64_t i = 0; i < n; i++) {
        made.sizes[i] = draw(4) ? draw(below) : 0;
        made.parts[i] = malloc((size_t)made.sizes[i] + 1);
        CHECK(made.parts[i]);
        for (int64_t k = 0; k < made.sizes[i]; k++) made.parts[i][k] = (unsigned char)draw(256);
    }
    return made;
}

static void free_contents(contents *made) {
    for (int64_t i = 0; i < made->n; i++) free(made->parts[i]);
}

static mpidata_sending *send_of(const contents *made, uint64_t number, int copies) {
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .dataset = 3, .kind = 2, .number = number, .n_parts = made->n};
    mpidata_sending *sending;
    CHECK(!mpidata_sending_new(&head, made->sizes, (const void *const *)made->parts, copies, &sending));
    return sending;
}

/* The messages of a parcel come from this rank; returns their number. */
static int come(const mpidata_sending *sending, int rank) {
    int n = 1;
    (void)fake_send(rank, TAG, sending->first, sending->first_bytes);
    for (mpidata_parcel_rest rest = mpidata_parcel_begin_rest(sending->sizes, sending->n_parts); mpidata_parcel_has_rest(&rest); n++) {
        int64_t part, at;
        int bytes;
        mpidata_parcel_next(&rest, &part, &at, &bytes);
        (void)fake_send(rank, TAG, sending->parts[part] + at, (size_t)bytes);
    }
    return n;
}

static mpidata_inbox *open_inbox(void) {
    fake_reset();
    mpidata_inbox *inbox = mpidata_inbox_open(MPI_COMM_SELF, TAG, peers, RANKS);
    CHECK(inbox);
    return inbox;
}

static void close_inbox(mpidata_inbox *inbox) {
    CHECK(!transfers.n);
    mpidata_inbox_close(inbox);
    mpidata_transfers_close(&transfers);
}

static mpidata_parcel_list take(mpidata_inbox *inbox) {
    mpidata_parcel_list whole = {0};
    int from = -1, did = 1;
    while (did) {
        did = 0;
        CHECK(!mpidata_transfers_test(&transfers, &did));
        CHECK(!mpidata_inbox_take(inbox, &transfers, &from, &did));
        mpidata_inbox_whole(inbox, &whole);
    }
    return whole;
}

static void check_same(const mpidata_parcel *parcel, const contents *made) {
    CHECK(parcel->head.n_parts == made->n);
    for (int64_t i = 0; i < made->n; i++) {
        CHECK(parcel->sizes[i] == made->sizes[i] && parcel->offsets[i] % 64 == 0);
        CHECK((size_t)(parcel->offsets[i] + parcel->sizes[i]) <= parcel->bytes);
        CHECK(!made->sizes[i] || !memcmp(parcel->memory + parcel->offsets[i], made->parts[i], (size_t)made->sizes[i]));
    }
}

static void what_is_sent_comes_whole(void) {
    const int64_t chunk = mpidata_chunk_bytes;
    for (int round = 0; round < 200; round++) {
        mpidata_inbox *inbox = open_inbox();
        mpidata_chunk_bytes = round % 2 ? 5000 : chunk;
        contents made = draw_contents(1 + draw(round < 100 ? 3 : MOST_PARTS), round % 4 < 2 ? 2000 : 40000);
        mpidata_sending *sending = send_of(&made, (uint64_t)round, round % 3 == 0);
        if (round % 3 == 0) /* the sending has copies */
            for (int64_t i = 0; i < made.n; i++) sending->parts[i] = sending->parts[i] == (char *)made.parts[i] ? NULL : sending->parts[i];
        CHECK(come(sending, 2) < FAKE_MOST);
        mpidata_parcel_list whole = take(inbox);
        mpidata_parcel *parcel = mpidata_parcels_pop(&whole);
        CHECK(parcel && !whole.first && parcel->peer == 7 && parcel->head.number == (uint64_t)round);
        check_same(parcel, &made);
        mpidata_parcel_free(parcel);
        mpidata_sending_free(sending);
        free_contents(&made);
        close_inbox(inbox);
    }
    mpidata_chunk_bytes = chunk;
}

/* A slow first message delays only later messages of its own rank, which stay in order. */
static void nobody_waits_for_another(void) {
    mpidata_inbox *inbox = open_inbox();
    contents made = draw_contents(6, 100000);
    mpidata_sending *sending[3];
    for (int i = 0; i < 3; i++) sending[i] = send_of(&made, (uint64_t)i, 0);
    int first = fake_n;
    CHECK(come(sending[0], 2) > 1 && come(sending[1], 2) > 1);
    int last = fake_n;
    (void)come(sending[2], 3);
    fake_messages[first].held = fake_messages[last - 1].held = 1;
    mpidata_parcel_list whole = take(inbox);
    CHECK(whole.first && whole.first == whole.last && whole.first->peer == 9);
    mpidata_parcels_free(&whole);
    fake_messages[first].held = 0;
    whole = take(inbox);
    CHECK(whole.first && whole.first == whole.last && whole.first->peer == 7 && whole.first->head.number == 0);
    check_same(whole.first, &made);
    mpidata_parcels_free(&whole);
    fake_messages[last - 1].held = 0;
    whole = take(inbox);
    CHECK(whole.first && whole.first->head.number == 1);
    mpidata_parcels_free(&whole);
    for (int i = 0; i < 3; i++) mpidata_sending_free(sending[i]);
    free_contents(&made);
    close_inbox(inbox);
}

/* For a death in each message in turn: what came is freed (AddressSanitizer checks), and later messages do no harm. */
static void a_death_in_the_middle_leaves_nothing(void) {
    if (!FAKE_DEATH) return;
    contents made = draw_contents(5, 100000);
    made.sizes[1] = made.sizes[1] > 20000 ? made.sizes[1] : 0;
    mpidata_sending *sending = send_of(&made, 1, 0);
    for (int dies = 0, n = 1; dies < n; dies++) {
        mpidata_inbox *inbox = open_inbox();
        n = come(sending, 2);
        for (int i = dies; i < n; i++) fake_messages[i].dead = 1;
        mpidata_parcel_list whole = take(inbox);
        CHECK(!whole.first);
        mpidata_inbox_lose(inbox, 2);
        (void)come(sending, 2); /* as if it were alive after all */
        (void)come(sending, 3);
        whole = take(inbox);
        CHECK(whole.first && whole.first == whole.last && whole.first->peer == 9);
        mpidata_parcels_free(&whole);
        close_inbox(inbox);
    }
    mpidata_sending_free(sending);
    free_contents(&made);
}

/* A loader that dies between two messages sends no more. */
static void half_a_parcel_is_freed_with_its_sender(void) {
    contents made = draw_contents(1, 2);
    made.sizes[0] = 100000;
    made.parts[0] = realloc(made.parts[0], 100000);
    CHECK(made.parts[0]);
    memset(made.parts[0], 1, 100000);
    mpidata_sending *sending = send_of(&made, 1, 0);
    mpidata_inbox *inbox = open_inbox();
    CHECK(come(sending, 2) == 2);
    fake_messages[1].matched = 1; /* the message never comes */
    mpidata_parcel_list whole = take(inbox);
    CHECK(!whole.first);
    mpidata_inbox_lose(inbox, 2);
    whole = take(inbox);
    CHECK(!whole.first);
    mpidata_sending_free(sending);
    free_contents(&made);
    close_inbox(inbox);
}

/* -- places --------------------------------------------------------------------------------------------------------- */

enum { GUARD = 64, GUARDED = 0xA5 };

/* A receiver's memory for every second part, with guards around each. */
typedef struct {
    const contents *made;
    uint64_t number;
    unsigned char *memory[MOST_PARTS];
} wanted;

static void want(wanted *these, const contents *made, uint64_t number) {
    *these = (wanted){.made = made, .number = number};
    for (int64_t i = 1; i < made->n; i += 2) {
        these->memory[i] = malloc((size_t)made->sizes[i] + 2 * GUARD);
        CHECK(these->memory[i]);
        memset(these->memory[i], GUARDED, (size_t)made->sizes[i] + 2 * GUARD);
    }
}

static int choose(void *context, const mpidata_parcel *parcel) {
    const wanted *these = context;
    if (parcel->head.number != these->number) return MPIDATA_SUCCESS;
    for (int64_t i = 1; i < these->made->n; i += 2) parcel->places[i] = (char *)these->memory[i] + GUARD;
    return MPIDATA_SUCCESS;
}

/* Checks that the parts have come, or, if not `came`, that nothing was written. */
static void check_wanted(const wanted *these, int came) {
    for (int64_t i = 1; i < these->made->n; i += 2) {
        const unsigned char *memory = these->memory[i], *end = memory + GUARD + these->made->sizes[i];
        for (int k = 0; k < GUARD; k++) CHECK(memory[k] == GUARDED && end[k] == GUARDED);
        if (came) CHECK(!memcmp(memory + GUARD, these->made->parts[i], (size_t)these->made->sizes[i]));
        for (const unsigned char *at = memory + GUARD; !came && at < end; at++) CHECK(*at == GUARDED);
    }
}

static void free_wanted(wanted *these) {
    for (int i = 0; i < MOST_PARTS; i++) free(these->memory[i]);
}

/* Sizes within a byte of those at which the way of parts changes. */
static int64_t draw_threshold(void) {
    static const int64_t at[] = {1, MPIDATA_BLOCK_ANYWHERE, 5000, MPIDATA_BLOCK_SMALL, MPIDATA_PIECE_SMALL, MPIDATA_ALONG_MAX};
    return at[draw(sizeof at / sizeof *at)] + draw(3) - 1;
}

static void parts_come_where_they_are_wanted(void) {
    const int64_t chunk = mpidata_chunk_bytes;
    for (int round = 0; round < 200; round++) {
        mpidata_inbox *inbox = open_inbox();
        mpidata_chunk_bytes = round % 2 ? 5000 : chunk;
        contents made = {.n = 2 + draw(2)};
        for (int64_t i = 0; i < made.n; i++) {
            made.sizes[i] = draw_threshold();
            made.parts[i] = malloc((size_t)made.sizes[i] + 1);
            CHECK(made.parts[i]);
            for (int64_t k = 0; k < made.sizes[i]; k++) made.parts[i][k] = (unsigned char)draw(160);
        }
        wanted these;
        want(&these, &made, 5);
        mpidata_inbox_place(inbox, (mpidata_placing){choose, &these});
        mpidata_sending *sending = send_of(&made, 5, 0), *other = send_of(&made, 6, 0);
        (void)come(other, 2);
        mpidata_parcel_list whole = take(inbox);
        CHECK(whole.first);
        check_same(whole.first, &made);
        check_wanted(&these, 0);
        mpidata_parcels_free(&whole);
        (void)come(sending, 2);
        whole = take(inbox);
        CHECK(whole.first && whole.first == whole.last && !mpidata_inbox_holds(inbox, 2, 5));
        check_wanted(&these, 1);
        for (int64_t i = 0; i < made.n; i++)
            CHECK(!made.sizes[i] || !memcmp(mpidata_parcel_part(whole.first, i), made.parts[i], (size_t)made.sizes[i]));
        mpidata_parcels_free(&whole);
        mpidata_sending_free(sending);
        mpidata_sending_free(other);
        free_wanted(&these);
        free_contents(&made);
        close_inbox(inbox);
    }
    mpidata_chunk_bytes = chunk;
}

/* Until then the memory does not belong to the receiver, which asks for the parcel again. */
static void a_parcel_is_held_until_nothing_writes_to_it(void) {
    contents made = {.n = 2, .sizes = {8, 100000}, .parts = {calloc(1, 9), malloc(100001)}};
    CHECK(made.parts[0] && made.parts[1]);
    memset(made.parts[1], 1, 100001);
    wanted these;
    want(&these, &made, 5);
    mpidata_sending *sending = send_of(&made, 5, 0);
    mpidata_inbox *inbox = open_inbox();
    mpidata_inbox_place(inbox, (mpidata_placing){choose, &these});
    CHECK(!mpidata_inbox_holds(inbox, 2, 5));
    CHECK(come(sending, 2) == 2);
    fake_messages[1].matched = 1; /* the message is still to come */
    mpidata_parcel_list whole = take(inbox);
    CHECK(!whole.first && mpidata_inbox_holds(inbox, 2, 5));
    fake_messages[1].matched = 0;
    fake_messages[1].held = 1;
    whole = take(inbox);
    CHECK(!whole.first && mpidata_inbox_holds(inbox, 2, 5) && !mpidata_inbox_holds(inbox, 3, 5) && !mpidata_inbox_holds(inbox, 2, 6));
    mpidata_inbox_lose(inbox, 2);
    whole = take(inbox);
    CHECK(!whole.first && mpidata_inbox_holds(inbox, 2, 5));
    fake_messages[1].held = 0;
    whole = take(inbox);
    CHECK(!whole.first && !mpidata_inbox_holds(inbox, 2, 5));
    mpidata_sending_free(sending);
    free_wanted(&these);
    free_contents(&made);
    close_inbox(inbox);
}

static int refuse(void *context, const mpidata_parcel *parcel) {
    (void)context, (void)parcel;
    return mpidata_error(MPIDATA_ERR_WIRE, "Not this one.");
}

static void a_parcel_that_its_receiver_refuses_leaves_nothing(void) {
    contents made = draw_contents(3, 100000);
    mpidata_sending *sending = send_of(&made, 5, 0);
    mpidata_inbox *inbox = open_inbox();
    int from = -1, did = 0, status = MPIDATA_SUCCESS;
    mpidata_inbox_place(inbox, (mpidata_placing){refuse, NULL});
    (void)fake_send(2, TAG, sending->first, sending->first_bytes);
    for (int i = 0; i < 3 && !status; i++) {
        CHECK(!mpidata_transfers_test(&transfers, &did));
        status = mpidata_inbox_take(inbox, &transfers, &from, &did);
    }
    CHECK(status == MPIDATA_ERR_WIRE && from == 2);
    mpidata_sending_free(sending);
    free_contents(&made);
    close_inbox(inbox);
}

static void what_is_wrong_is_refused(void) {
    contents made = draw_contents(2, 100);
    mpidata_sending *sending = send_of(&made, 1, 0);
    mpidata_parcel *parcel;
    const struct { size_t at; int64_t value; size_t bytes; } changes[] = {
        {0, 1, sending->first_bytes},                                         /* magic */
        {offsetof(mpidata_parcel_head, n_parts), 0, sending->first_bytes},
        {offsetof(mpidata_parcel_head, n_parts), INT64_MAX, sending->first_bytes},
        {offsetof(mpidata_parcel_head, n_parts), 30, sending->first_bytes},
        {sizeof(mpidata_parcel_head), -1, sending->first_bytes},
        {sizeof(mpidata_parcel_head), INT64_MAX, sending->first_bytes},
        {sizeof(mpidata_parcel_head), made.sizes[0] + 1, sending->first_bytes},
        {sizeof(mpidata_parcel_head), made.sizes[0], sending->first_bytes - 1},
        {sizeof(mpidata_parcel_head), made.sizes[0], 8},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        double copy[64];
        CHECK(sending->first_bytes <= sizeof copy);
        memcpy(copy, sending->first, sending->first_bytes);
        memcpy((char *)copy + changes[i].at, &changes[i].value, sizeof changes[i].value);
        CHECK(mpidata_parcel_open((const char *)copy, changes[i].bytes, 0, NULL, &parcel) == MPIDATA_ERR_WIRE);
    }
    mpidata_inbox *inbox = open_inbox();
    int from = -1, did = 0;
    (void)come(sending, 1);
    CHECK(mpidata_inbox_take(inbox, &transfers, &from, &did) == MPIDATA_ERR_WIRE && from == 1);
    mpidata_inbox_close(inbox);
    mpidata_sending_free(sending);
    free_contents(&made);
}

/* A part whose size differs from the announced one. */
static void a_part_of_another_size_is_refused(void) {
    contents made = draw_contents(1, 2);
    made.sizes[0] = 50000;
    made.parts[0] = realloc(made.parts[0], 50000);
    CHECK(made.parts[0]);
    memset(made.parts[0], 2, 50000);
    mpidata_sending *sending = send_of(&made, 1, 0);
    mpidata_inbox *inbox = open_inbox();
    int from = -1, did = 1, status = MPIDATA_SUCCESS;
    CHECK(come(sending, 3) == 2);
    fake_messages[1].size--;
    while (!status && did) {
        did = 0;
        CHECK(!mpidata_transfers_test(&transfers, &did));
        status = mpidata_inbox_take(inbox, &transfers, &from, &did);
    }
    CHECK(status == MPIDATA_ERR_WIRE && from == 3);
    mpidata_inbox_close(inbox);
    mpidata_transfers_close(&transfers);
    mpidata_sending_free(sending);
    free_contents(&made);
}

static void sends_end_with_their_messages(void) {
    contents made = draw_contents(4, 60000);
    mpidata_sending_list list = {0}, ended = {0};
    int did = 0;
    fake_reset();
    for (int i = 0; i < 3; i++) {
        mpidata_sending *sending = send_of(&made, (uint64_t)i, 0);
        sending->ticket = i;
        fake_hold_sends = i == 1;
        mpidata_sendings_append(&list, sending);
        CHECK(!mpidata_sending_begin(sending, &transfers, 2, TAG, MPI_COMM_SELF));
    }
    CHECK(!mpidata_transfers_test(&transfers, &did) && did);
    mpidata_sendings_move_ended(&list, &ended);
    CHECK(list.first && list.first == list.last && list.first->ticket == 1);
    CHECK(ended.first && ended.first->ticket == 0 && ended.last->ticket == 2);
    for (int i = 0; i < fake_n; i++) fake_messages[i].dead = fake_messages[i].held; /* the receiver has died */
    int expected = FAKE_DEATH ? 0 : transfers.n;
    if (FAKE_DEATH) CHECK(!mpidata_transfers_test(&transfers, &did) && transfers.n == expected);
    mpidata_sendings_move_ended(&list, &ended);
    mpidata_sendings_free(&list);
    mpidata_sendings_free(&ended);
    mpidata_transfers_close(&transfers);
    free_contents(&made);
    fake_hold_sends = 0;
}

static mpidata_parcel *large(int64_t bytes) {
    struct { mpidata_parcel_head head; int64_t size; double room[8]; } first = {.head = {.magic = MPIDATA_PARCEL_MAGIC, .n_parts = 1}};
    mpidata_parcel *parcel;
    first.size = bytes;
    CHECK(!mpidata_parcel_open((const char *)&first, mpidata_parcel_first_bytes(&bytes, 1), 0, NULL, &parcel));
    return parcel;
}

/* Memory of large parcels, which a much smaller parcel does not take. */
static void memory_is_used_again(void) {
    mpidata_parcel *parcel = large(8 << 20);
    const char *memory = parcel->memory;
    mpidata_parcel_free(parcel);
    parcel = large(1 << 20);
    CHECK(parcel->memory != memory);
    mpidata_parcel *second = large((8 << 20) - 100);
    CHECK(second->memory == memory);
    mpidata_parcel_free(parcel);
    mpidata_parcel_free(second);
}

/* The parcel is copied after its offsets and sizes, or not at all if there is not enough room. */
static void one_is_copied_to_the_callers_memory(void) {
    for (int64_t n = 1; n <= MOST_PARTS; n += 3) {
        contents made = draw_contents(n, 100);
        mpidata_sending *sending = send_of(&made, 1, 0);
        mpidata_parcel *parcel;
        CHECK(!mpidata_parcel_open(sending->first, sending->first_bytes, 0, NULL, &parcel));
        const int64_t room = (int64_t)mpidata_padded((size_t)n * 16) + (int64_t)parcel->bytes;
        char *memory = aligned_alloc(64, mpidata_padded((size_t)room));
        int64_t bytes = -1;
        CHECK(memory && !mpidata_parcel_copy(parcel, memory, room - 1, &bytes) && !mpidata_parcel_copy(parcel, memory, 0, &bytes));
        CHECK(bytes == -1 && !mpidata_parcel_copy(parcel, memory, -1, &bytes));
        CHECK(mpidata_parcel_copy(parcel, memory, room, &bytes));
        mpidata_parcel_free(parcel);
        const int64_t *offsets = (const int64_t *)(void *)memory, *sizes = offsets + n;
        CHECK(bytes == offsets[0] + sizes[0]);
        for (int64_t i = 0; i < n; i++)
            CHECK(sizes[i] == made.sizes[i] && offsets[i] % 64 == 0 && !memcmp(memory + offsets[i], made.parts[i], (size_t)sizes[i]));
        free(memory);
        mpidata_sending_free(sending);
        free_contents(&made);
    }
}

int main(void) {
    one_is_copied_to_the_callers_memory();
    what_is_sent_comes_whole();
    nobody_waits_for_another();
    a_death_in_the_middle_leaves_nothing();
    half_a_parcel_is_freed_with_its_sender();
    what_is_wrong_is_refused();
    a_part_of_another_size_is_refused();
    sends_end_with_their_messages();
    memory_is_used_again();
    parts_come_where_they_are_wanted();
    a_parcel_is_held_until_nothing_writes_to_it();
    a_parcel_that_its_receiver_refuses_leaves_nothing();
    return 0;
}
