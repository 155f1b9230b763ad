/* The exit note of a program that ended badly. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank.h"

static const char *truth(int value) { return value ? "true" : "false"; }

static void write_place(FILE *file)
{
    if (me.spawned) fputs("{\"rank\": null, ", file);
    else fprintf(file, "{\"rank\": %ld, ", me.rank);
    fprintf(file, "\"role\": \"%s\", ", mpidata_role_name(me.role));
    if (me.role == MPIDATA_ROLE_TRAINER) fprintf(file, "\"trainer\": %ld, ", me.index);
    if (me.role == MPIDATA_ROLE_LOADER) fprintf(file, "\"loader\": %ld, ", me.index);
    if (me.role == MPIDATA_ROLE_SERVER) fprintf(file, "\"server\": %ld, ", me.index);
    if (me.role == MPIDATA_ROLE_INFERENCE) fprintf(file, "\"inference\": %ld, ", me.index);
    if (me.role == MPIDATA_ROLE_LEARNER) fprintf(file, "\"learner\": %ld, ", me.index);
    if (me.role == MPIDATA_ROLE_MATE)
        fprintf(file, "\"trainer\": %ld, \"rank_in_replica\": %ld, ", me.index, me.rank_in_group);
    if (me.role == MPIDATA_ROLE_SOLVER)
        fprintf(file, "\"group\": %ld, \"rank_in_group\": %ld, ", me.index, me.rank_in_group);
}

static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', file);
        if ((unsigned char)*c >= ' ') fputc(*c, file);
    }
    fputc('"', file);
}

const char *write_exit_note(const end_t *end)
{
    char *path = print("%s/" MPIDATA_RUN_EXITS "/%s", me.run_folder, file_name(0)), *temporary = print("%s.new", path);
    const int descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!file) return strerror(errno);
    write_place(file);
    if (end->aborted) fprintf(file, "\"exit\": null, \"signal\": null, \"abort\": %d, ", end->abort_code);
    else if (WIFSIGNALED(end->status)) fprintf(file, "\"exit\": null, \"signal\": %d, ", WTERMSIG(end->status));
    else fprintf(file, "\"exit\": %d, \"signal\": null, ", WEXITSTATUS(end->status));
    fprintf(file, "\"pid\": %ld, \"joined\": %s, ", (long)end->pid, truth(end->joined));
    if (end->silent_s > 0)
        fprintf(file, "\"silent_s\": %.3f, \"silent_key\": \"%s\", \"stopped\": %s, ", end->silent_s, end->silent_key,
                truth(end->stopped));
    else fputs("\"silent_s\": null, ", file);
    if (end->late) fputs("\"late\": true, ", file);
    if (end->batches > 0) fprintf(file, "\"batches\": %lld, ", end->batches);
    if (end->item && *end->item) {
        fputs("\"item\": ", file);
        write_text(file, end->item);
        fputs(", ", file);
    }
    if (end->raised) {
        fputs("\"raised\": ", file);
        write_text(file, end->raised);
        fputs(", ", file);
    }
    fprintf(file, "\"told\": %s, \"error\": ", truth(end->told));
    if (end->error) write_text(file, end->error);
    else fputs("null", file);
    fputs("}\n", file);
    const int unwritten = ferror(file); /* fclose reports only its own writes */
    if (!fclose(file) && !unwritten && !rename(temporary, path)) return NULL;
    const char *why = strerror(errno);
    unlink(temporary);
    return why;
}

/* The scheduler, which would wait for this rank forever, learns from the note that it does not come. */
void leave_word(const char *text)
{
    static int writing;
    if (!me.spawned || me.index < 0 || writing++) return;
    me.rank_in_group = me.rank < 0 ? 0 : me.rank;
    (void)write_exit_note(&(end_t){.status = 1 << 8, .pid = getpid(), .error = text});
}

char *own_word(const char *log, long begun)
{
    char *line = NULL, *word = NULL;
    size_t room = 0;
    FILE *file = fopen(log, "re");
    if (!file || fseek(file, begun, SEEK_SET)) return NULL;
    while (getline(&line, &room, file) > 0) {
        if (strncmp(line, "mpidata: ", 9) != 0) continue;
        line[strcspn(line, "\n")] = 0;
        free(word);
        word = print("%s", line + 9);
    }
    free(line);
    fclose(file);
    return word;
}

char *unfinished(int joined)
{
    const int trainer = me.role == MPIDATA_ROLE_TRAINER || me.role == MPIDATA_ROLE_MATE, own = !trainer && me.role != MPIDATA_ROLE_SOLVER;
    const char *join = trainer ? "creating an MPIStreamDataset" : own ? "joining the job" : "calling mpidata_init";
    const char *leave = trainer ? "its stream was closed" : own ? "it was released" : "mpidata_finalize";
    if (joined)
        return print("The program of %s ended with exit status 0, but before %s. Let it end normally.", rank_name(),
                     leave);
    return print("The program of %s ended with exit status 0 without %s. Is it the right program?", rank_name(), join);
}
