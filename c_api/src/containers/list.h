/* First in, first out: lists of elements linked by their member `next`. A list is a structure with the members `first`, NULL if
 * it is empty, and `last`. */
#ifndef MPIDATA_LIST_H
#define MPIDATA_LIST_H

#include <stddef.h>

#define MPIDATA_LIST_APPEND(list, element)                                       \
    do {                                                                         \
        (element)->next = NULL;                                                  \
        *((list)->first ? &(list)->last->next : &(list)->first) = (element);     \
        (list)->last = (element);                                                \
    } while (0)

/* Remove the first element, into the variable `element`; NULL: the list is empty. */
#define MPIDATA_LIST_POP(list, element)                                          \
    do {                                                                         \
        (element) = (list)->first;                                               \
        if (element) (list)->first = (element)->next;                            \
    } while (0)

#endif
