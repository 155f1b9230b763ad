/* What this process has used of its machine. Thread-safe. */
#ifndef MPIDATA_USAGE_H
#define MPIDATA_USAGE_H

#include "wire/messages.h"

mpidata_usage mpidata_usage_now(void);

#endif
