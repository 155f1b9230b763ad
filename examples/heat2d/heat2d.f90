! Heat equation u_t = alpha (u_xx + u_yy) on the unit square: one simulation of the ensemble per parameter set.
!
! 64 x 64 interior points, second-order differences in space, explicit Euler in time; the four sides keep their
! temperature. The grid is split over the ranks of the group along y; each rank sends its own block of every sample.
! u(i, j) is the temperature at x = i h, y = j h, and arrives as tensor[j-1, i-1].
!
!     ./heat2d_f             a solver of the job (see heat2d.yaml), or one simulation when started alone
!     ./heat2d_f --verify    compare with an analytic solution on two grids; also under mpirun
!
! MPI return codes are not checked: the error handlers of MPI_COMM_WORLD and of the group end this rank on an error.
program heat2d
  use mpidata
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  include 'mpif.h'

  integer, parameter :: n = 64, steps = 100
  real(real64), parameter :: step_time = 0.005_real64
  integer :: group, ierror
  integer(int64) :: simulation
  character(16) :: argument

  call MPI_Init(ierror)
  call get_command_argument(1, argument)
  if (argument == '--verify') then
    call verify()
  else
    call mpidata_init(MPI_COMM_WORLD, group)
    do while (mpidata_next(simulation))
      call simulate(group)
    end do
    call mpidata_finalize()
  end if
  call MPI_Finalize(ierror)

contains

  subroutine simulate(group)
    integer, intent(in) :: group
    real(real64), allocatable :: u(:, :)
    real(real64) :: alpha, initial, left, right, bottom, top
    integer :: first, last, step, ierror

    call mpidata_param('alpha', alpha)
    call mpidata_param('initial', initial)
    call mpidata_param('left', left)
    call mpidata_param('right', right)
    call mpidata_param('bottom', bottom)
    call mpidata_param('top', top)
    call split(group, n, first, last)
    allocate (u(0:n + 1, first - 1:last + 1))
    u = initial
    u(:, first - 1) = bottom ! between two ranks the first exchange overwrites it
    u(:, last + 1) = top
    u(0, :) = left
    u(n + 1, :) = right
    do step = 1, steps
      call advance(group, u, alpha, step_time)
      call mpidata_put('temperature', u(1:n, first:last), start=[1, first])
      call mpidata_step(step * step_time, ierror)
      if (ierror /= MPIDATA_SUCCESS) return ! an error, or MPIDATA_END: the job is stopping
    end do
  end subroutine simulate

  !> The rows first..last of this rank; uneven if n is not a multiple of the ranks.
  subroutine split(comm, n, first, last)
    integer, intent(in) :: comm, n
    integer, intent(out) :: first, last
    integer :: ranks, rank, ierror

    call MPI_Comm_size(comm, ranks, ierror)
    call MPI_Comm_rank(comm, rank, ierror)
    first = n * rank / ranks + 1
    last = n * (rank + 1) / ranks
  end subroutine split

  !> Advance by `time`, with enough substeps that alpha dt / h^2 <= 0.2 (the scheme is stable up to 0.25).
  !> u has a halo of one, which holds the boundary values at a side.
  subroutine advance(comm, u, alpha, time)
    integer, intent(in) :: comm
    real(real64), intent(inout) :: u(0:, 0:)
    real(real64), intent(in) :: alpha, time
    real(real64), allocatable :: old(:, :)
    real(real64) :: h, factor
    integer :: i, j, nx, ny, s, substeps

    nx = ubound(u, 1) - 1
    ny = ubound(u, 2) - 1
    h = 1.0_real64 / (nx + 1)
    substeps = max(1, ceiling(alpha * time / (0.2_real64 * (h * h))))
    factor = alpha * (time / substeps) / (h * h)
    allocate (old(0:nx + 1, 0:ny + 1))
    do s = 1, substeps
      call exchange_halo(comm, u, nx, ny)
      old = u
      do j = 1, ny
        do i = 1, nx ! the brackets fix the order, so that all decompositions agree
          u(i, j) = old(i, j) + factor * (((old(i - 1, j) + old(i + 1, j)) + (old(i, j - 1) + old(i, j + 1))) &
            - 4.0_real64 * old(i, j))
        end do
      end do
    end do
  end subroutine advance

  subroutine exchange_halo(comm, u, nx, ny)
    integer, intent(in) :: comm, nx, ny
    real(real64), intent(inout) :: u(0:nx + 1, 0:ny + 1)
    integer :: ranks, rank, down, up, ierror, status(MPI_STATUS_SIZE)

    call MPI_Comm_size(comm, ranks, ierror)
    call MPI_Comm_rank(comm, rank, ierror)
    down = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    up = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(u(1, ny), nx, MPI_DOUBLE_PRECISION, up, 0, u(1, 0), nx, MPI_DOUBLE_PRECISION, down, 0, &
      comm, status, ierror)
    call MPI_Sendrecv(u(1, 1), nx, MPI_DOUBLE_PRECISION, down, 1, u(1, ny + 1), nx, MPI_DOUBLE_PRECISION, up, 1, &
      comm, status, ierror)
  end subroutine exchange_halo

  subroutine verify()
    real(real64) :: coarse, fine
    integer :: rank, ierror

    coarse = error_on_grid(MPI_COMM_WORLD, 31)
    fine = error_on_grid(MPI_COMM_WORLD, 63)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    if (rank == 0) print '(a, es12.6, a, es12.6, a, f5.3)', 'error ', coarse, ' on 31 x 31, ', fine, &
      ' on 63 x 63: order ', log(coarse / fine) / log(2.0_real64)
  end subroutine verify

  !> Return the largest error at t = 0.1 against sin(pi x) sin(pi y) exp(-2 pi^2 alpha t), which is 0 at the sides.
  real(real64) function error_on_grid(comm, n) result(largest)
    integer, intent(in) :: comm, n
    real(real64), parameter :: pi = acos(-1.0_real64), alpha = 0.5_real64, time = 0.1_real64
    real(real64), allocatable :: u(:, :), mode(:, :)
    real(real64) :: error
    integer :: first, last, i, j, ierror

    call split(comm, n, first, last)
    allocate (u(0:n + 1, first - 1:last + 1), mode(n, first:last))
    do j = first, last
      do i = 1, n
        mode(i, j) = sin(pi * i / (n + 1)) * sin(pi * j / (n + 1))
      end do
    end do
    u = 0
    u(1:n, first:last) = mode
    call advance(comm, u, alpha, time)
    error = maxval(abs(u(1:n, first:last) - mode * exp(-2 * pi**2 * alpha * time)))
    call MPI_Allreduce(error, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierror)
  end function error_on_grid

end program heat2d
