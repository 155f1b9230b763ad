#include "containers/message_list.h"

#include <stdlib.h>

#include "containers/list.h"

int mpidata_messages_append(mpidata_message_list *messages, MPI_Message message, const MPI_Status *status) {
    mpidata_matched *matched = malloc(sizeof *matched);
    if (!matched) return 0;
    *matched = (mpidata_matched){.message = message, .status = *status};
    MPIDATA_LIST_APPEND(messages, matched);
    return 1;
}

mpidata_matched *mpidata_messages_pop(mpidata_message_list *messages) {
    mpidata_matched *matched;
    MPIDATA_LIST_POP(messages, matched);
    return matched;
}

void mpidata_messages_free(mpidata_message_list *messages) {
    for (mpidata_matched *matched; (matched = mpidata_messages_pop(messages));) free(matched);
}
