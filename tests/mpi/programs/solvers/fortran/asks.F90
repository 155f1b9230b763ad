!> Asks the model in each step: y = 2 x, and the sum of each row; the last dimension has the rows. CARRIED: without MPI.
program asks
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
#ifdef CARRIED
  use mpidata_carried
  implicit none
#else
  use mpidata
  implicit none
  include 'mpif.h'
  integer :: group
#endif
  integer :: simulation, step, row, ierror
  integer(int64) :: version, question
  real(real32), target, asynchronous :: x(4, 3), y(4, 3)
  real(real64), target, asynchronous :: sums(3)

#ifdef CARRIED
  call mpidata_attach()
#else
  call MPI_Init(ierror)
  call mpidata_init(MPI_COMM_WORLD, group)
#endif
  do while (mpidata_next(simulation))
    do step = 1, 10
      x = reshape([(real(row * step + simulation, real32), row = 1, 12)], [4, 3])
      call mpidata_infer([mpidata_named('x', x)], [mpidata_named('y', y), mpidata_named('sums', sums)], version)
      call check(version == 0 .and. all(abs(y - 2 * x) < 1e-3) .and. all(abs(sums - sum(real(x, real64), 1)) < 1e-6))
      y = 0
      call mpidata_infer_begin([mpidata_named('x', x)], [mpidata_named('y', y), mpidata_named('sums', sums)], question)
      call mpidata_infer_wait(question)
      call check(question == 0 .and. all(abs(y - 2 * x) < 1e-3))
      call mpidata_put('u', y(1:3, 1))
      call mpidata_step(real(step, real64), ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
    end do
  end do
  call mpidata_finalize()
#ifndef CARRIED
  call MPI_Finalize(ierror)
#endif

contains

  subroutine check(good)
    logical, intent(in) :: good

    if (.not. good) error stop 'asks: a wrong answer'
  end subroutine check

end program asks
