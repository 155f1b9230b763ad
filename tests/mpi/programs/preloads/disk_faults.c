/* Preloaded into all processes of a job: calls on files whose path matches MPIDATA_TEST_FAULT fail, or are delayed.
 * Its format is "<call> <errno or 0: delay> <first> <count> <pattern>"; each process counts its own calls. Each fault
 * is appended to the file MPIDATA_TEST_FAULTS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char wanted[16], pattern[256];
static int number;
static long first, count;
static atomic_long seen;

__attribute__((constructor)) static void prepare(void)
{
    const char *fault = getenv("MPIDATA_TEST_FAULT");
    if (fault && sscanf(fault, "%15s %d %ld %ld %255s", wanted, &number, &first, &count, pattern) != 5) *wanted = 0;
}

/* Returns whether the call must fail, with errno set. */
static int fails(const char *call, const char *path)
{
    if (!*wanted || strcmp(call, wanted) || fnmatch(pattern, path, 0)) return 0;
    const long n = atomic_fetch_add(&seen, 1);
    if (n < first || n - first >= count) return 0;
    char line[512];
    const int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    const char *notes = getenv("MPIDATA_TEST_FAULTS");
    const long file = notes ? syscall(SYS_openat, AT_FDCWD, notes, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (file >= 0) {
        syscall(SYS_write, file, line, (size_t)length);
        syscall(SYS_close, file);
    }
    if (number == 0) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    errno = number;
    return number != 0;
}

static int fails_on(const char *call, int file)
{
    char link[64], path[4096];
    if (strcmp(call, wanted)) return 0;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

#define OPEN(name, before, names, dir) \
    int name(before const char *path, int flags, ...) \
    { \
        REAL(name); \
        va_list list; \
        va_start(list, flags); \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && fails("open", path)) return -1; \
        return real(names path, flags, mode); \
    }
#define NOTHING
#define COMMA_DIR dir,
#define INT_DIR int dir,
OPEN(open, NOTHING, NOTHING, )
OPEN(open64, NOTHING, NOTHING, )
OPEN(openat, INT_DIR, COMMA_DIR, )
OPEN(openat64, INT_DIR, COMMA_DIR, )

ssize_t write(int file, const void *bytes, size_t size)
{
    REAL(write);
    return fails_on("write", file) ? -1 : real(file, bytes, size);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t place)
{
    REAL(pwrite);
    return fails_on("write", file) ? -1 : real(file, bytes, size, place);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t place)
{
    REAL(pwrite64);
    return fails_on("write", file) ? -1 : real(file, bytes, size, place);
}

int fsync(int file)
{
    REAL(fsync);
    return fails_on("fsync", file) ? -1 : real(file);
}

int rename(const char *path, const char *to)
{
    REAL(rename);
    return fails("rename", to) ? -1 : real(path, to);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    return fails("mkdir", path) ? -1 : real(path, mode);
}
