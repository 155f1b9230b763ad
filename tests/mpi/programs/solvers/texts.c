/* Reads the parameters of test_parameter_texts.py, numbers and texts. Argument: a mistake with a text ("number", "room"
 * or "unknown"). */
#ifdef CARRIED /* a carried program */
#include <mpidata_carried.h>
#else
#include <mpidata.h>
#endif
#include <stdio.h>
#include <string.h>

#define MUST(call) \
    do { \
        if ((call) != MPIDATA_SUCCESS) { \
            (void)fprintf(stderr, "%s: %s\n", #call, mpidata_last_error()); \
            return 2; \
        } \
    } while (0)

static int join(int *argc, char ***argv) {
#ifdef CARRIED
    (void)argc, (void)argv;
    return mpidata_attach();
#else
    MPI_Comm group;
    MPI_Init(argc, argv);
    return mpidata_init(MPI_COMM_WORLD, &group);
#endif
}

static void make(const char *mistake, char *text, size_t room) {
    if (!strcmp(mistake, "number")) mpidata_param_text("level", text, room);
    if (!strcmp(mistake, "room")) mpidata_param_text("model", text, 9);
    if (!strcmp(mistake, "unknown")) mpidata_param_text("mash", text, 9);
}

int main(int argc, char **argv) {
    const char *mistake = argc > 1 ? argv[1] : "";
    const char *meshes[] = {"coarse", "very \"fine\", 1=1 {\xc3\xa9}"};
    const int64_t shape[] = {4, 6};
    int64_t simulation;
    MUST(join(&argc, &argv));
    while (mpidata_next(&simulation) == MPIDATA_SUCCESS) {
        double mesh, level, alpha, n, u[24];
        char text[MPIDATA_MAX_TEXT], model[10];
        MUST(mpidata_param("mesh", &mesh));
        MUST(mpidata_param("level", &level));
        MUST(mpidata_param("alpha", &alpha));
        MUST(mpidata_param("n", &n));
        MUST(mpidata_param_text("mesh", text, sizeof text));
        MUST(mpidata_param_text("model", model, sizeof model));
        if (strcmp(text, meshes[(int)mesh]) || strcmp(model, "k-epsilon") || n != 3) return 3;
        for (int i = 0; i < 24; i++) u[i] = mesh + 10 * level + 100 * alpha;
        MUST(mpidata_put("u", u, MPIDATA_FLOAT64, 2, shape));
        MUST(mpidata_step(0.0));
        make(mistake, text, sizeof text);
    }
    MUST(mpidata_finalize());
#ifdef CARRIED
    return 0;
#else
    return MPI_Finalize();
#endif
}
