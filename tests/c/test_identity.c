/* MPI implementations are identified by their libraries' version strings. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "wire/identity.h"
#include "base/status.h"

static const char *short_name(const char *text) {
    static char name[MPIDATA_MPI_NAME_MAX];
    mpidata_mpi_name(text, name, sizeof name);
    return name;
}

int main(void) {
    CHECK(!strcmp(short_name("Open MPI v5.0.11, package: x, ident: 5"), "Open MPI v5.0.11"));
    CHECK(!strcmp(short_name("MPICH Version:      5.0.2\nMPICH Release date: today"), "MPICH Version: 5.0.2"));
    CHECK(!strcmp(short_name("MPICH Version:\t4.0.2 \n"), "MPICH Version: 4.0.2"));
    CHECK(!strcmp(short_name(""), ""));
    char small[8];
    mpidata_mpi_name("Open MPI v5", small, sizeof small);
    CHECK(!strcmp(small, "Open MP"));

    CHECK(mpidata_same_mpi("Open MPI v5.0.11", "Open MPI v5.0.9rc1"));
    CHECK(mpidata_same_mpi("MPICH Version: 4.0.2", "MPICH Version: 4.1"));
    CHECK(!mpidata_same_mpi("Open MPI v5.0.11", "Open MPI v4.1.4"));
    CHECK(!mpidata_same_mpi("Open MPI v5.0.11", "Open MPI v50.1"));
    CHECK(!mpidata_same_mpi("Open MPI v5.0.11", "MPICH Version: 5.0.2"));
    CHECK(!mpidata_same_mpi("MPICH Version: 4.0.2", "MPICH Version: 5.0.2"));
    CHECK(!mpidata_same_mpi("Open MPI", "Open MPI v5"));

    CHECK(mpidata_same_mpi(mpidata_built_with(), short_name(mpidata_built_with())));
    CHECK(mpidata_check_identity() == 0);
    CHECK(setenv("MPIDATA_MPI", mpidata_built_with(), 1) == 0 && mpidata_check_identity() == 0);
    CHECK(setenv("MPIDATA_MPI", "Some MPI 7.1, package: x", 1) == 0 && mpidata_check_identity() != 0);
    CHECK(strstr(mpidata_last_error(), "The job runs on Some MPI 7.1, but this program's libmpidata was built with"));
    return 0;
}
