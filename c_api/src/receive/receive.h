/* The receive thread of a trainer. It makes all MPI calls of the trainer. */
#ifndef MPIDATA_RECEIVE_H
#define MPIDATA_RECEIVE_H

/* The receive thread's main function; its argument is the mpidata_trainer. */
void *mpidata_receive_thread(void *trainer);

#endif
