/* Unaware of mpidata: reads a number from input.txt, and writes 12 arrays of 4 x 6 float32, the number plus the step,
 * to u_0.npy, ... in the given folder. */
#include <stdio.h>
#include <string.h>

static int write_array(const char *folder, int step, float value) {
    char path[512], head[128];
    memset(head, ' ', sizeof head);
    const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 6), }";
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes follow */
    memcpy(head + 10, dict, sizeof dict - 1);
    head[sizeof head - 1] = '\n';
    snprintf(path, sizeof path, "%s/u_%d.npy", folder, step);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, sizeof head, 1, file) != 1) return 1;
    for (int i = 0; i < 24; i++)
        if (fwrite(&value, sizeof value, 1, file) != 1) return 1;
    return fclose(file);
}

int main(int argc, char **argv) {
    char path[512];
    float number = 0;
    if (argc != 2) return 2;
    snprintf(path, sizeof path, "%s/input.txt", argv[1]);
    FILE *input = fopen(path, "r");
    if (!input || fscanf(input, "%f", &number) != 1) return 3;
    fclose(input);
    for (int step = 0; step < 12; step++)
        if (write_array(argv[1], step, number + (float)step)) return 4;
    return 0;
}
