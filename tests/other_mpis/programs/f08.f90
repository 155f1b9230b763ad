! A solver that uses mpi_f08 itself; each rank of the group puts its part of the field.
program f08
  use mpi_f08
  use mpidata
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  implicit none
  integer, parameter :: rows = 4, columns = 6, steps = 5
  type(MPI_Comm) :: group
  integer :: rank, size, step, total, handle
  integer(int64) :: simulation
  real(real64) :: alpha
  real(real32), allocatable :: block(:, :)

  call MPI_Init()
  call mpidata_init(MPI_COMM_WORLD%MPI_VAL, handle)
  group%MPI_VAL = handle
  call MPI_Comm_rank(group, rank)
  call MPI_Comm_size(group, size)
  allocate (block(columns, rows / size))
  do while (mpidata_next(simulation))
    call mpidata_param('alpha', alpha)
    do step = 1, steps
      call MPI_Allreduce(step, total, 1, MPI_INTEGER, MPI_SUM, group)
      block = real(alpha, real32) + real(total / size, real32)
      call mpidata_put('u', block, [1, 1 + rank * (rows / size)])
      call mpidata_step(real(step, real64))
    end do
  end do
  call mpidata_finalize()
  call MPI_Finalize()
end program
