! Viscous Burgers equation u_t + u u_x = nu u_xx on a ring of n points, split over all ranks of MPI_COMM_WORLD. A
! typical program: its parameters are in a namelist, it makes one run, and it has its world to itself. The lines ending
! with !m stream u at every step to the trainers of a job; without a job the program runs as before.
program burgers
  use mpidata_carried !m
  use, intrinsic :: iso_fortran_env, only: real64, int64
  implicit none (type, external)
  include 'mpif.h'
  external :: MPI_Init, MPI_Comm_rank, MPI_Comm_size, MPI_Sendrecv, MPI_Finalize

  integer, parameter :: n = 256
  real(real64), parameter :: pi = acos(-1.0_real64), dx = 2 * pi / n, dt = 0.2_real64 * dx
  real(real64) :: viscosity, amplitude, phase
  integer :: steps, rank, ranks, first, last, step, i, error, status(MPI_STATUS_SIZE)
  integer(int64) :: simulation !m
  real(real64), allocatable :: u(:), flux(:)
  namelist /setup/ viscosity, amplitude, phase, steps

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  open (unit=10, file='input.nml', status='old', action='read')
  read (10, nml=setup)
  close (10)
  call mpidata_attach() !m
  if (.not. mpidata_next(simulation)) steps = 0 !m

  first = n * rank / ranks + 1
  last = n * (rank + 1) / ranks
  allocate (u(first - 1:last + 1), flux(first - 1:last))
  do i = first, last
    u(i) = 1 + amplitude * sin((i - 1) * dx + phase)
  end do
  do step = 1, steps
    call exchange()
    do i = first - 1, last ! upwind, as u > 0
      flux(i) = 0.5_real64 * u(i)**2 - viscosity * (u(i + 1) - u(i)) / dx
    end do
    do i = first, last
      u(i) = u(i) - dt / dx * (flux(i) - flux(i - 1))
    end do
    call mpidata_put('u', u(first:last), start=[first]) !m
    call mpidata_step(step * dt, error) !m
    if (error /= MPIDATA_SUCCESS) exit !m
  end do
  call mpidata_finalize() !m
  call MPI_Finalize(error)

contains

  subroutine exchange()
    integer :: left, right
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)
    call MPI_Sendrecv(u(last), 1, MPI_DOUBLE_PRECISION, right, 0, u(first - 1), 1, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, status, error)
    call MPI_Sendrecv(u(first), 1, MPI_DOUBLE_PRECISION, left, 1, u(last + 1), 1, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, status, error)
  end subroutine
end program
