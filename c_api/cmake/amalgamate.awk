# Prints C sources as one file: awk -v folders="src include" -f amalgamate.awk FILE...
# Each #include "..." is replaced by the header, the first time.
function take(file,    line, name) {
    while ((getline line < file) > 0) {
        if (line !~ /^#include "/) { print line; continue }
        split(line, name, "\"")
        if (!(name[2] in taken)) { taken[name[2]]; take(found(name[2])) }
    }
    close(file)
}
function found(name,    i, line) {
    for (i = 1; i <= n_folders; i++)
        if ((getline line < (folder[i] "/" name)) > 0) { close(folder[i] "/" name); return folder[i] "/" name }
    print "There is no " name " in " folders "." > "/dev/stderr"
    exit 1
}
BEGIN {
    n_folders = split(folders, folder, " ")
    print "/* libmpidata_carried in one file of C99, made from its sources. Link with -lm. */"
    print "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#define MPIDATA_WITHOUT_MPI"
    # In one file, functions of headers that are not called count as unused, and names that are static in one source hide.
    print "#pragma GCC diagnostic ignored \"-Wunused-function\"\n#pragma GCC diagnostic ignored \"-Wshadow\""
    print "#if __STDC_VERSION__ < 201112L\n#define _Thread_local __thread\n#endif"
    for (i = 1; i < ARGC; i++) take(ARGV[i])
}
