#define _GNU_SOURCE
#include "process.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *open_file_of(pid_t pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

char state_of(pid_t pid, pid_t *parent)
{
    char text[512], state;
    int number;
    FILE *file = open_file_of(pid, "stat");
    if (!file) return 0;
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may contain any characters */
    if (!end || sscanf(end + 1, " %c %d", &state, &number) != 2) return 0;
    *parent = number;
    return state;
}

/* A field of /proc/PID/stat after the name, by its number in proc(5); 0 if there is none. */
static unsigned long field_of(const char *stat, int number)
{
    const char *at = strrchr(stat, ')'); /* of field 2 */
    for (int field = 2; at && field < number; field++) at = strchr(at + 1, ' ');
    return at ? strtoul(at, NULL, 10) : 0;
}

int has_variables(pid_t pid)
{
    enum { START_CODE = 26, ENV_START = 50, ENV_END };
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    if (readlink(path, text, sizeof text) < 0) return 0; /* it has ended, or is of the kernel or of another user */
    FILE *file = open_file_of(pid, "stat");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if (!field_of(text, START_CODE)) return 1; /* an exec sets it last */
    return field_of(text, ENV_START) != field_of(text, ENV_END);
}

char *own_folder(void)
{
    char path[PATH_MAX + 1];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) return NULL;
    path[length] = 0;
    *strrchr(path, '/') = 0;
    return strdup(path);
}
