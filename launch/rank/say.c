/* Texts and messages. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rank.h"

void (*before_refusal)(const char *text);

/* Rank 0 reports first: a launcher ends all ranks as soon as one has failed. */
_Noreturn void refuse(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) text = NULL;
    va_end(list);
    if (before_refusal) before_refusal(text);
    if (me.rank > 0 && !me.speaks) sleep(me.spawned ? 0 : 3);
    else fprintf(stderr, "mpidata: %s\n", text ? text : "Out of memory.");
    exit(1);
}

void say_aside(const char *sentence)
{
    const char *aside = getenv("MPIDATA_ASIDE");
    const int file = aside ? open(aside, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC) : -1;
    if (file < 0) return;
    dprintf(file, "mpidata: %s\n", sentence);
    close(file);
}

char *print(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) refuse("Out of memory. Rank %ld. Give the job more memory.", me.rank);
    va_end(list);
    return text;
}

long number(const char *text)
{
    if (!text || !*text) return -1;
    char *end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return *end || errno || value < 0 || value > 1000000000 ? -1 : value;
}
