! Like scattered.c, in Fortran, with one rank.
program solver
  use mpidata_carried
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  integer, parameter :: rank = 0, ranks = 1
  integer :: ierror, simulation, step, i, n
  integer(int64), allocatable :: rows(:)
  integer(int32) :: ghosts(20)
  real(real64), allocatable :: u(:, :)
  real(real32), allocatable :: v(:)

  call mpidata_attach()
  ghosts = [(mod(i - 1 + rank, 20) + 1, i = 1, 20)]
  do while (mpidata_next(simulation))
    do step = 0, 5
      rows = rows_of(9)
      n = size(rows)
      allocate (u(2, n), v(0))
      do i = 1, n
        u(:, i) = 1000 * simulation + 100 * step + 2 * (rows(i) - 1) + [0, 1]
      end do
      call mpidata_put('u', u, at=rows)
      rows = rows_of(10 + step)
      v = real(100 * step + rows - 1, real32)
      call mpidata_put('v', v, at=int(rows))
      call mpidata_put_indices('ends', [(i, i = 1, 5)], ghosts)
      call mpidata_put('w', [1d0, 2d0, 3d0])
      call mpidata_put_indices('own', [1, 2, 3], ierror=ierror)
      if (ierror /= MPIDATA_SUCCESS) error stop 'own'
      deallocate (u, v)
      call mpidata_step(step, ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
    end do
  end do
  call mpidata_finalize()

contains

  ! Returns this rank's rows of n, counted from 1, the last first.
  function rows_of(n) result(rows)
    integer, intent(in) :: n
    integer(int64), allocatable :: rows(:)
    integer(int64) :: row

    allocate (rows(0))
    do row = n, 1, -1
      if (mod((row - 1)**2, int(ranks, int64)) == rank) rows = [rows, row]
    end do
  end function rows_of
end program solver
