! The constants of Open MPI's mpif.h that heat2d.f90 uses; see mpifh.c. Fits fixed and free source form.
      integer MPI_COMM_WORLD, MPI_PROC_NULL, MPI_STATUS_SIZE
      integer MPI_DOUBLE_PRECISION, MPI_MAX
      parameter (MPI_COMM_WORLD = 0)
      parameter (MPI_PROC_NULL = -2)
      parameter (MPI_STATUS_SIZE = 6)
      parameter (MPI_DOUBLE_PRECISION = 17)
      parameter (MPI_MAX = 1)
