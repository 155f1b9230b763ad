#define _GNU_SOURCE
#include "process.h"

#include <limits.h>
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

char *own_folder(void)
{
    char path[PATH_MAX + 1];
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) return NULL;
    path[length] = 0;
    *strrchr(path, '/') = 0;
    return strdup(path);
}
