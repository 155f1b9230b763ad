/* State of this rank, which the other parts read. */
#include "rank.h"

rank_t me = {.rank = -1};
