! Like writes.cpp, for its variables fields/u and t only: u(5, 11) is the field of shape [11, 5].
program writes
  use mpi
  use adios2
  implicit none
  type(adios2_adios) :: adios
  type(adios2_io) :: io
  type(adios2_engine) :: engine
  type(adios2_variable) :: u, t
  character(255) :: xml, number
  integer :: rank, ranks, ierror, simulation, step, i, j
  integer(8) :: first, past
  real(8), allocatable :: values(:, :)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  first = 11 * rank**2 / ranks**2
  past = 11 * (rank + 1)**2 / ranks**2
  allocate (values(5, past - first))
  call get_command_argument(1, xml)
  call get_environment_variable('MPIDATA_SIMULATION', number)
  read (number, *) simulation
  call adios2_init(adios, trim(xml), MPI_COMM_WORLD, ierror)
  call adios2_declare_io(io, adios, 'output', ierror)
  call adios2_define_variable(u, io, 'fields/u', adios2_type_dp, 2, [5_8, 11_8], [0_8, first], [5_8, past - first], &
                              adios2_constant_dims, ierror)
  call adios2_define_variable(t, io, 't', adios2_type_dp, ierror)
  call adios2_open(engine, io, 'out.bp', adios2_mode_write, ierror)
  do step = 0, 2 + mod(simulation, 3)
    call adios2_begin_step(engine, ierror)
    do j = 1, int(past - first)
      do i = 1, 5
        values(i, j) = 10000d0 * simulation + 1000d0 * step + 10d0 * real(first + j - 1, 8) + i - 1
      end do
    end do
    call adios2_put(engine, u, values, ierror)
    call adios2_put(engine, t, 0.25d0 * step, ierror)
    call adios2_end_step(engine, ierror)
  end do
  call adios2_close(engine, ierror)
  call adios2_finalize(adios, ierror)
  call MPI_Finalize(ierror)
end program writes
