! Solver that reads the published arrays, like published.c.
program published
  use mpidata
  use, intrinsic :: iso_fortran_env, only: int16, int64, real32, real64
  implicit none
  include 'mpif.h'
  integer :: group, rank, simulation, version, step, i, ierror
  real(real64), pointer :: weight(:)
  real(real32), pointer :: bias(:, :)
  integer(int64), pointer :: number
  integer(int16), pointer :: none(:, :)
  real(real32) :: u(6, 4)

  call MPI_Init(ierror)
  call mpidata_init(MPI_COMM_WORLD, group)
  call MPI_Comm_rank(group, rank, ierror)
  do while (mpidata_next(simulation))
    version = 0
    step = 0
    do while (version < 3 .or. step < 3)
      call mpidata_refresh(version, ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
      call mpidata_published('weight', weight)
      call mpidata_published('bias', bias, ierror)
      if (ierror /= merge(MPIDATA_SUCCESS, MPIDATA_ERR_AGAIN, version > 0)) error stop 'status'
      call mpidata_published('step', number)
      call mpidata_published('none', none)
      if (associated(weight) .neqv. version > 0) error stop 'before the first'
      if (version > 0) then
        if (any(abs(weight - [(i + version, i = 0, 99)]) > 0)) error stop 'weight'
        if (any(shape(bias) /= [3, 2])) error stop 'shape of bias'
        if (any(abs(reshape(bias, [6]) - [(i - version, i = 0, 5)]) > 0)) error stop 'bias'
        if (number /= version) error stop 'step'
        if (any(shape(none) /= [3, 0])) error stop 'none'
      end if
      u = real(version, real32)
      if (rank == 0) call mpidata_put('u', u)
      call mpidata_step(real(step, real64), ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
      step = step + 1
    end do
  end do
  call mpidata_finalize()
  call MPI_Finalize(ierror)
end program published
