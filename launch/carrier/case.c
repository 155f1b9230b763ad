/* The folder of a simulation: a copy of the case's, with marks like {{alpha:.6e}} in some of its files filled in. */
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
#include "fill.h"
#include "job/run_files.h"

enum { PATH = 4096, MOST_FILLED = 64 << 20 };

/* nftw has no argument of its own. */
static struct {
    const case_t *source;
    const char *target;
    char **values;
} copying;

static int cannot(const char *what, const char *path) {
    return mpidata_error(MPIDATA_ERR_JOB, "Cannot %s %.1000s: %s. See solvers.case in the job file.", what, path, strerror(errno));
}

static int is_among(char **names, const char *name) {
    for (; names && *names; names++)
        if (!strcmp(*names, name)) return 1;
    return 0;
}

static int add(char ***names, const char *name) {
    size_t n = 0;
    while (*names && (*names)[n]) n++;
    char **grown = realloc(*names, (n + 2) * sizeof *grown);
    if (!grown || !(grown[n] = strdup(name))) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the case.");
    grown[n + 1] = NULL;
    *names = grown;
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
    return status;
}

static const char *value_of(char **values, const char *name, size_t length) {
    for (; values && *values; values++)
        if (!strncmp(*values, name, length) && (*values)[length] == '=') return *values + length + 1;
    return NULL;
}

/* What stands between the braces: a name, maybe with a format of printf for a number. Returns whether it could be filled. */
static int write_mark(FILE *out, char **values, const char *mark, size_t length) {
    char text[128], name[MPIDATA_NAME_MAX], format[32] = "";
    if (length >= sizeof text) return 0;
    memcpy(text, mark, length);
    text[length] = '\0';
    if (sscanf(text, " %127[A-Za-z0-9_] : %15[-+0-9.eEfFgGd]", name, format) < 1) return 0;
    const char *value = value_of(values, name, strlen(name));
    return value && write_value(out, value, format);
}

/* Where the search goes on, if what is between an opening sign and the next closing one is no mark, as another opening sign or
 * the end of the line comes first; else NULL. */
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
        /* What is no mark stays, as the check before the start has let it pass. */
        if (!write_mark(out, values, name, (size_t)(close - name)) &&
            fwrite(open, 1, (size_t)(text - open), out) != (size_t)(text - open)) return 0;
    }
    return 1;
}

static int fill_file(int from, int to, size_t length) {
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

static int copy_file(const char *path, const char *target, const struct stat *status, int filled) {
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (status->st_mode & 0777) | 0200);
    int good = from >= 0 && to >= 0;
    if (good && filled) good = fill_file(from, to, (size_t)status->st_size);
    for (off_t left = status->st_size; good && !filled && left > 0;) {
        const ssize_t n = sendfile(to, from, NULL, (size_t)left);
        good = n > 0;
        left -= n;
    }
    if (from >= 0) close(from);
    if (to >= 0 && close(to)) good = 0;
    return good;
}

static int copy_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    char target[PATH], where[PATH];
    const char *name = path + strlen(copying.source->folder);
    while (*name == '/') name++;
    if (!place->level) return FTW_CONTINUE; /* made already */
    if (snprintf(target, sizeof target, "%s/%s", copying.target, name) >= (int)sizeof target) return FTW_STOP;
    if (is_among(copying.source->link, name)) return symlink(path, target) ? FTW_STOP : FTW_SKIP_SUBTREE;
    if (type == FTW_D) return mkdir(target, (status->st_mode & 0777) | 0700) ? FTW_STOP : FTW_CONTINUE;
    if (type == FTW_SL) {
        const ssize_t n = readlink(path, where, sizeof where - 1);
        where[n > 0 ? n : 0] = '\0';
        return n <= 0 || symlink(where, target) ? FTW_STOP : FTW_CONTINUE;
    }
    if (type == FTW_F && !S_ISREG(status->st_mode)) /* to open a FIFO would block */
        return mknod(target, status->st_mode, status->st_rdev) ? FTW_STOP : FTW_CONTINUE;
    return copy_file(path, target, status, is_among(copying.source->fill, name)) ? FTW_CONTINUE : FTW_STOP;
}

/* FTW_SKIP_SUBTREE is for folders alone. */
static int copy_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    const int next = copy_one(path, status, type, place);
    return next == FTW_SKIP_SUBTREE && type != FTW_D ? FTW_CONTINUE : next;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

static int opened; /* by open_entry */

/* A program may have made folders that not even their owner may write, or read. */
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

/* Also to another file system. */
static int move_tree(const char *path, const char *to) {
    const case_t all = {.folder = (char *)(uintptr_t)path};
    if (!rename(path, to)) return 0;
    if (errno != EXDEV || mkdir(to, 0755)) return -1;
    copying.source = &all;
    copying.target = to;
    if (nftw(path, copy_entry, 16, FTW_PHYS | FTW_ACTIONRETVAL)) return -1;
    remove_tree(path);
    return 0;
}

void case_name(case_t *case_, long long simulation, long long by_try, int group) {
    (void)snprintf(case_->path, sizeof case_->path, "%s/%lld-g%d", case_->in, simulation, group);
    case_->simulation = simulation;
    case_->by_try = by_try;
}

/* Another group, whose copy was the last one, may just remove the folders of all, so that they are made again. */
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

int case_make(case_t *case_, long long simulation, long long by_try, int group, char **values) {
    if (!case_->folder) return MPIDATA_SUCCESS;
    case_name(case_, simulation, by_try, group);
    remove_tree(case_->path); /* of a carrier that has died */
    if (make_folder(case_)) return cannot("make the folder", case_->path);
    copying.source = case_;
    copying.target = case_->path;
    copying.values = values;
    errno = 0;
    return nftw(case_->folder, copy_entry, 16, FTW_PHYS | FTW_ACTIONRETVAL) ? cannot("copy the case to", case_->path)
                                                                            : MPIDATA_SUCCESS;
}

static void keep(const case_t *case_) {
    char kept[PATH];
    (void)mkdir(case_->failed, 0755);
    for (long long number = case_->by_try; number < case_->by_try + 1000; number++) { /* a resume may count anew */
        (void)snprintf(kept, sizeof kept, "%s/%lld-%lld", case_->failed, case_->simulation, number);
        if (access(kept, F_OK) == 0) continue;
        if (move_tree(case_->path, kept))
            (void)fprintf(stderr, "mpidata: %s is kept there, as it cannot be moved to %s: %s\n", case_->path, kept, strerror(errno));
        return;
    }
}

void case_end(case_t *case_, int failed) {
    if (!case_->folder || !*case_->path || access(case_->path, F_OK)) return;
    if (failed && case_->keep_failed) keep(case_);
    else remove_tree(case_->path);
    *case_->path = '\0';
    /* The last one can; the folder that the user has named stays where something else is in it. */
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
