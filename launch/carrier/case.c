/* The folder of a simulation: a copy of the case, with marks such as {{alpha:.6e}} in some of its files filled in. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "carrier.h"
#include "containers/array.h"
#include "containers/text_list.h"
#include "fill.h"
#include "job/run_files.h"

enum { PATH = 4096, MOST_FILLED = 64 << 20 };

/* State for nftw, which passes no argument to its callback. */
static struct {
    const case_t *source;
    const char *target;
    char **values;
    int moves;         /* whether files that a program has left are kept unchanged */
    size_t met;        /* number of filled or linked paths that were found */
    char at[PATH];     /* path that could not be copied */
    int error;         /* and errno */
} copying;

static int cannot(const char *what, const char *path) {
    return mpidata_error(MPIDATA_ERR_JOB, "Cannot %s %.1000s: %s. See solvers.case in the job file.", what, path, strerror(errno));
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int is_among(const paths_t *paths, const char *path) {
    return paths->n && bsearch(&path, paths->all, paths->n, sizeof *paths->all, compare);
}

static int add(paths_t *paths, const char *path) {
    char *own = strdup(path);
    if (!own || !mpidata_array_reserve(&paths->all, &paths->room, (int64_t)paths->n + 1, 16, sizeof *paths->all)) {
        free(own);
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the case.");
    }
    paths->all[paths->n++] = own;
    return MPIDATA_SUCCESS;
}

static int set_text(char **text, const char *value) {
    free(*text);
    *text = strdup(value);
    return *text ? MPIDATA_SUCCESS : mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the case.");
}

int case_read(case_t *case_, const char *run) {
    char *line = NULL, path[PATH];
    size_t room = 0;
    int status = MPIDATA_SUCCESS;
    (void)snprintf(path, sizeof path, "%s/" MPIDATA_RUN_CASE, run);
    FILE *file = fopen(path, "re");
    if (!file) return errno == ENOENT ? MPIDATA_SUCCESS : cannot("read", path);
    if (asprintf(&case_->in, "%s/cases", run) < 0 || asprintf(&case_->failed, "%s/failed", run) < 0)
        status = mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the case.");
    while (!status && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, ' ');
        if (!value) continue;
        *value++ = '\0';
        if (strcmp(line, "marks") != 0) (void)unescape(value);
        if (!strcmp(line, "folder")) status = set_text(&case_->folder, value);
        if (!strcmp(line, "in")) status = set_text(&case_->in, value);
        case_->is_apart |= !strcmp(line, "in");
        if (!strcmp(line, "marks")) (void)sscanf(value, "%15s %15s", case_->opens, case_->closes);
        if (!strcmp(line, "keep")) case_->keep_failed = !strcmp(value, "failed");
        if (!strcmp(line, "fill")) status = add(&case_->fill, value);
        if (!strcmp(line, "link")) status = add(&case_->link, value);
    }
    if (!status && ferror(file)) status = cannot("read", path);
    free(line);
    fclose(file);
    char *real = case_->folder ? realpath(case_->folder, NULL) : NULL;
    if (real) {
        free(case_->folder);
        case_->folder = real;
    }
    if (case_->fill.n) qsort(case_->fill.all, case_->fill.n, sizeof *case_->fill.all, compare);
    if (case_->link.n) qsort(case_->link.all, case_->link.n, sizeof *case_->link.all, compare);
    return status;
}

/* Fill in a mark: a name, optionally with a format of printf for a number. Returns whether it could be filled. */
static int write_mark(FILE *out, char **values, const char *mark, size_t length) {
    char text[128], name[MPIDATA_NAME_MAX], format[32] = "";
    if (length >= sizeof text) return 0;
    memcpy(text, mark, length);
    text[length] = '\0';
    if (sscanf(text, " %127[A-Za-z0-9_] : %15[-+0-9.eEfFgGd]", name, format) < 1) return 0;
    const char *value = mpidata_texts_value(values, name, strlen(name));
    return value && write_value(out, value, format);
}

/* Where to continue the search if the text up to the next closing sign is not a mark, because another opening sign or the
 * end of the line comes first; else NULL. */
static const char *no_mark_until(const char *name, const char *close) {
    const char *open = memmem(name, (size_t)(close - name), copying.source->opens, strlen(copying.source->opens));
    const char *line = memchr(name, '\n', (size_t)(close - name));
    return open && (!line || open < line) ? open : line;
}

static int write_filled(FILE *out, char **values, const char *text, size_t length) {
    const size_t opens = strlen(copying.source->opens), closes = strlen(copying.source->closes);
    for (const char *end = text + length; text < end;) {
        const char *open = memmem(text, (size_t)(end - text), copying.source->opens, opens);
        const char *name = open ? open + opens : NULL;
        const char *close = open ? memmem(name, (size_t)(end - name), copying.source->closes, closes) : NULL;
        const char *other = close ? no_mark_until(name, close) : NULL;
        const size_t plain = (size_t)((other ? other : close ? open : end) - text);
        if (fwrite(text, 1, plain, out) != plain) return 0;
        if (!close) break;
        text = other;
        if (other) continue;
        text = close + closes;
        /* Text that is not a mark is kept: the check before the start has accepted it. */
        if (!write_mark(out, values, name, (size_t)(close - name)) &&
            fwrite(open, 1, (size_t)(text - open), out) != (size_t)(text - open)) return 0;
    }
    return 1;
}

static int fill_file(int from, int to, size_t length) {
    errno = EFBIG;
    char *text = length <= MOST_FILLED ? malloc(length + 1) : NULL;
    size_t got = 0;
    ssize_t n = 0;
    while (text && got < length && ((n = read(from, text + got, length - got)) > 0 || (n < 0 && errno == EINTR))) got += n > 0 ? (size_t)n : 0;
    FILE *out = text && n >= 0 ? fdopen(dup(to), "w") : NULL;
    int good = out && write_filled(out, copying.values, text, got);
    if (out && fclose(out)) good = 0;
    free(text);
    return good;
}

/* The owner may write and remove all; the rights of others are those in the case, whatever the umask. */
static int keep_mode(int file, mode_t mode) {
    struct stat now;
    if (fstat(file, &now)) return -1;
    return (now.st_mode & 0777) == mode ? 0 : fchmod(file, mode | (now.st_mode & S_ISGID));
}

static int copy_file(const char *path, const char *target, const struct stat *status, int filled) {
    const mode_t mode = (status->st_mode & 0777) | 0200;
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const int to = from >= 0 ? open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
    int good = to >= 0;
    errno = good ? EIO : errno; /* for example, if it has become shorter */
    if (good && filled) good = fill_file(from, to, (size_t)status->st_size);
    for (off_t left = status->st_size; good && !filled && left > 0;) {
        const ssize_t n = sendfile(to, from, NULL, (size_t)left);
        good = n > 0 || (n < 0 && errno == EINTR);
        left -= n > 0 ? n : 0;
    }
    if (good && keep_mode(to, mode)) good = 0;
    const int error = errno;
    if (from >= 0) close(from);
    if (to >= 0 && close(to)) return 0;
    errno = error;
    return good;
}

static int copy_folder(const char *target, mode_t mode) {
    if (mkdir(target, mode | 0700)) return 0;
    const int made = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int good = made >= 0 && !keep_mode(made, (mode & 0777) | 0700);
    if (made >= 0) close(made);
    return good;
}

static int is_within(const char *path, const char *folder) {
    const size_t length = strlen(folder);
    return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/* Whether a relative link with this text leads out of the case; to, of PATH bytes: its target as an absolute path. */
static int leaves_case(const char *link, char *text, char *to) {
    char real[PATH], *rest = text;
    int leaves = 0;
    (void)snprintf(to, PATH, "%s", link);
    *strrchr(to, '/') = '\0';
    for (char *part; (part = strtok_r(rest, "/", &rest));) {
        if (!strcmp(part, ".")) continue;
        if (realpath(to, real)) (void)snprintf(to, PATH, "%s", real);
        leaves |= !is_within(to, copying.source->folder);
        const size_t length = strlen(to);
        if (!strcmp(part, "..")) *strrchr(to, '/') = '\0';
        else if (length + 1 + strlen(part) < PATH) (void)snprintf(to + (length == 1 ? 0 : length), PATH - length, "/%s", part);
        if (!*to) (void)snprintf(to, PATH, "/");
        leaves |= !is_within(to, copying.source->folder);
    }
    return leaves;
}

/* A relative link leads to the same place within the copy, or out of the case; an absolute one is kept. */
static int copy_link(const char *path, const char *target) {
    char text[PATH], parts[PATH], to[PATH];
    const ssize_t n = readlink(path, text, sizeof text - 1);
    if (n <= 0) return 0;
    text[n] = '\0';
    memcpy(parts, text, (size_t)n + 1);
    const int moves = !copying.moves && *text != '/' && leaves_case(path, parts, to);
    return !symlink(moves ? to : text, target);
}

static int copy_special(const char *target, const struct stat *status) {
    if (S_ISFIFO(status->st_mode)) return !mkfifo(target, status->st_mode & 0777); /* opening it would block */
    errno = ENOTSUP;
    return copying.moves && !mknod(target, status->st_mode, status->st_rdev);
}

/* Returns whether it was copied; *below: whether its contents must also be copied. */
static int copy_one(const char *path, const struct stat *status, int type, int *below) {
    char target[PATH];
    struct stat behind;
    const char *name = path + strlen(copying.source->folder);
    while (*name == '/') name++;
    errno = ENAMETOOLONG;
    if (snprintf(target, sizeof target, "%s/%s", copying.target, name) >= (int)sizeof target) return 0;
    const int linked = is_among(&copying.source->link, name);
    const int filled = !linked && type != FTW_D && is_among(&copying.source->fill, name);
    copying.met += linked || filled;
    *below = !linked;
    errno = EACCES;
    if (linked) return !symlink(path, target);
    if (type == FTW_NS || type == FTW_DNR) return 0;
    if (type == FTW_D) return copy_folder(target, status->st_mode);
    if (filled && !S_ISREG(status->st_mode)) {
        if (stat(path, &behind)) return 0;
        if (S_ISREG(behind.st_mode)) return copy_file(path, target, &behind, 1);
        errno = EINVAL;
        return 0;
    }
    if (type == FTW_SL) return copy_link(path, target);
    return S_ISREG(status->st_mode) ? copy_file(path, target, status, filled) : copy_special(target, status);
}

static int copy_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    int below = 1;
    if (!place->level && type == FTW_D) return FTW_CONTINUE; /* already made */
    if (!copy_one(path, status, type, &below)) {
        copying.error = errno;
        (void)snprintf(copying.at, sizeof copying.at, "%s", path);
        return FTW_STOP;
    }
    return below || type != FTW_D ? FTW_CONTINUE : FTW_SKIP_SUBTREE;
}

static int copy_tree(const case_t *source, const char *target, char **values, int moves) {
    copying.source = source;
    copying.target = target;
    copying.values = values;
    copying.moves = moves;
    copying.met = 0;
    copying.error = 0;
    (void)snprintf(copying.at, sizeof copying.at, "%s", source->folder);
    errno = 0;
    const int stopped = nftw(source->folder, copy_entry, 16, FTW_PHYS | FTW_ACTIONRETVAL);
    if (copying.error) errno = copying.error;
    return stopped ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

static int opened; /* by open_entry */

/* A program may have made folders that even their owner may not write or read. */
static int open_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)place;
    if ((type == FTW_D || type == FTW_DNR) && (status->st_mode & 0700) != 0700 && !chmod(path, 0700)) opened += type == FTW_DNR;
    return 0;
}

static void remove_tree(const char *path) {
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    if (access(path, F_OK)) return;
    do {
        opened = 0;
        (void)nftw(path, open_entry, 16, FTW_PHYS);
    } while (opened);
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Move a tree, also to another file system. */
static int move_tree(const char *path, const char *to) {
    const case_t all = {.folder = (char *)(uintptr_t)path};
    if (!rename(path, to)) return 0;
    if (errno != EXDEV || mkdir(to, 0755)) return -1;
    if (copy_tree(&all, to, NULL, 1)) return -1;
    remove_tree(path);
    return 0;
}

void case_name(case_t *case_, long long simulation, long long by_try, int group) {
    (void)snprintf(case_->path, sizeof case_->path, "%s/%lld-g%d", case_->in, simulation, group);
    case_->simulation = simulation;
    case_->by_try = by_try;
}

/* Another group, whose copy was the last one, may be removing the folders of all: then they are made again. */
static int make_folder(const case_t *case_) {
    char above[PATH];
    (void)snprintf(above, sizeof above, "%s", case_->in);
    char *slash = strrchr(above, '/');
    if (slash) *slash = '\0';
    while (mkdir(case_->path, 0755)) {
        if (errno != ENOENT) return -1;
        if (mkdir(case_->in, 0755) && errno != EEXIST && (errno != ENOENT || mkdir(above, 0755)) && errno != EEXIST) return -1;
    }
    return 0;
}

/* A filled or linked file may have been removed after the job started; a new file is only copied. */
static int refuse_gone(const case_t *case_) {
    const paths_t *both[] = {&case_->fill, &case_->link};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++) {
            char path[2 * PATH];
            struct stat found;
            (void)snprintf(path, sizeof path, "%s/%s", case_->path, both[k]->all[i]);
            if (lstat(path, &found) || (k ? !S_ISLNK(found.st_mode) : !S_ISREG(found.st_mode)))
                return mpidata_error(MPIDATA_ERR_JOB, "%.500s/%.500s, which is %s, was removed after the job started. Restore it, "
                                     "or correct 'solvers.case'.", case_->folder, both[k]->all[i], k ? "linked" : "filled");
        }
    return MPIDATA_SUCCESS;
}

int case_make(case_t *case_, long long simulation, long long by_try, int group, char **values) {
    if (!case_->folder) return MPIDATA_SUCCESS;
    case_name(case_, simulation, by_try, group);
    remove_tree(case_->path); /* left by a dead carrier */
    if (make_folder(case_)) return cannot("make the folder", case_->path);
    if (copy_tree(case_, case_->path, values, 0)) {
        const char *why = strerror(errno);
        return mpidata_error(MPIDATA_ERR_JOB, "Cannot copy the case to %.1000s: %.1000s: %s. See solvers.case in the job file.",
                             case_->path, copying.at, why);
    }
    return copying.met < case_->fill.n + case_->link.n ? refuse_gone(case_) : MPIDATA_SUCCESS;
}

static void keep(const case_t *case_) {
    char kept[PATH];
    (void)mkdir(case_->failed, 0755);
    for (long long number = case_->by_try; number < case_->by_try + 1000; number++) { /* a resumed run may restart the count */
        (void)snprintf(kept, sizeof kept, "%s/%lld-%lld", case_->failed, case_->simulation, number);
        if (access(kept, F_OK) == 0) continue;
        if (move_tree(case_->path, kept))
            (void)fprintf(stderr, "mpidata: %s stays there: it cannot be moved to %s: %s\n", case_->path, kept, strerror(errno));
        return;
    }
}

void case_end(case_t *case_, int failed) {
    if (!case_->folder || !*case_->path || access(case_->path, F_OK)) return;
    if (failed && case_->keep_failed) keep(case_);
    else remove_tree(case_->path);
    *case_->path = '\0';
    /* Only the last copy's removal succeeds; the folder that the user has named stays if it contains other files. */
    if (!rmdir(case_->in)) {
        char *slash = strrchr(case_->in, '/');
        *slash = '\0';
        if (case_->is_apart) (void)rmdir(case_->in);
        *slash = '/';
    }
}

void case_end_of_group(case_t *case_, int group) {
    DIR *all = case_->folder ? opendir(case_->in) : NULL;
    for (struct dirent *entry; all && (entry = readdir(all));) {
        long long simulation;
        int found, end = 0;
        if (sscanf(entry->d_name, "%lld-g%d%n", &simulation, &found, &end) != 2 || entry->d_name[end]) continue;
        if (group >= 0 && found != group) continue;
        case_name(case_, simulation, 1, found);
        case_end(case_, 1);
    }
    if (all) closedir(all);
}

/* -- of a group that is spawned for one simulation. It has no carrier, so this program is called for it, without MPI: by the
 * scheduler before the group is spawned, and by the parent of the group's rank 0 when that has ended. The parent of a carrier
 * also calls it, because the carrier may have been killed. */

static long long value(char **values, const char *name) {
    const char *found = mpidata_texts_value(values, name, strlen(name));
    return found ? atoll(found) : 0;
}

int spawned_case(int argc, char **argv) {
    static case_t spawned;
    const int make = argc > 1 && !strcmp(argv[1], "--make-case"), kept = argc > 1 && !strcmp(argv[1], "--failed-case");
    const int all = argc > 1 && !strcmp(argv[1], "--end-cases");
    if (!make && !kept && !all && (argc < 2 || strcmp(argv[1], "--end-case") != 0)) return -1;
    if (argc < 4) return 2;
    char **values = argv + 4;
    const int group = atoi(argv[3]);
    const long long simulation = value(values, "simulation"), by_try = value(values, "try");
    int status = case_read(&spawned, argv[2]);
    if (!status && make) status = case_make(&spawned, simulation, by_try, group, values);
    if (!status && all) case_end_of_group(&spawned, group);
    if (!status && !make && !all) {
        case_name(&spawned, simulation, by_try, group);
        case_end(&spawned, kept);
    }
    if (status) (void)fprintf(stderr, "%s\n", mpidata_last_error());
    return status != 0;
}
