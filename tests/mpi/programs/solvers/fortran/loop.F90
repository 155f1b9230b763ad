!> Solver of the loop campaign, like loop.c. Arguments: STEPS STEP_US SEED REFRESHES ELEMENTS ASKS ROWS LEAST P.
program loop
#ifdef CARRIED
  use mpidata_carried
#else
  use mpidata
#endif
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  implicit none
#ifndef CARRIED
  include 'mpif.h'
#endif
  integer, parameter :: most_open = 8
  type :: asked
    integer(int64) :: rows, version, question
    real(real32), allocatable :: x(:, :), y(:, :)
    integer(int64), allocatable :: k(:), v(:), call(:), n(:)
  end type asked
  interface
    integer(c_int) function usleep(us) bind(c, name='usleep')
      import :: c_int
      integer(c_int), value :: us
    end function usleep
  end interface
  type(asked), target, asynchronous :: questions(most_open)
  integer :: group = 0, rank = 0, ranks = 1, simulation, steps, pause_us, seed, refreshes, elements, asks, most, least
  integer :: is_ragged, unit, step, ierror, version, open_now = 0, slept
  real(real64) :: alpha
  character(9) :: how

  call numbers()
  call join()
  do while (mpidata_next(simulation))
    call check_left()
    call mpidata_param('alpha', alpha)
    write (unit, '(a, 1x, i0)') 'begin', simulation
    flush (unit)
    how = 'complete'
    do step = 0, steps + mod(simulation, 3) - 1
      if (mod(simulation * 7919_int64 + step * 104729_int64 + seed, 100_int64) < refreshes) then
        call mpidata_refresh(version, ierror)
        if (ierror /= MPIDATA_SUCCESS) exit
        write (unit, '(a, 1x, i0, 1x, i0)') 'version', step, version
        flush (unit)
        call check_published()
      end if
      do while (open_now > 0 .and. (mod(simulation, 3) == 0 .or. mod(step, 2) == 0))
        call take_answer()
      end do
      call ask_some(ierror)
      if (ierror == MPIDATA_SUCCESS) call put(ierror)
      if (ierror == MPIDATA_SUCCESS) call mpidata_step(real(step, real64), ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
      slept = usleep(int(pause_us, c_int))
    end do
    if (step < steps + mod(simulation, 3)) then
      call must(ierror == MPIDATA_CANCELLED, 'status')
      how = 'cancelled'
    end if
    write (unit, '(a, 1x, i0, 1x, i0, 1x, a)') 'end', simulation, step, trim(how)
    flush (unit)
  end do
  call check_left()
  call mpidata_finalize()
#ifndef CARRIED
  call MPI_Finalize(ierror)
#endif

contains

  subroutine must(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what

    if (holds) return
    write (*, '(3a)') 'NOT SO: ', what, mpidata_last_error()
    flush (6)
    error stop 'loop'
  end subroutine must

  subroutine numbers()
    character(32) :: argument
    integer :: values(9), i

    do i = 1, 9
      call get_command_argument(i, argument)
      read (argument, *) values(i)
    end do
    steps = values(1)
    pause_us = values(2)
    seed = values(3)
    refreshes = values(4)
    elements = values(5)
    asks = values(6)
    most = values(7)
    least = values(8)
    is_ragged = values(9)
  end subroutine numbers

  subroutine join()
    character(64) :: path
    integer(int64) :: count
    real(real64) :: life, greatest

    call system_clock(count)
    life = real(count, real64)
    greatest = life
#ifdef CARRIED
    call mpidata_attach()
#else
    call MPI_Init(ierror)
    call mpidata_init(MPI_COMM_WORLD, group)
    call MPI_Comm_rank(group, rank, ierror)
    call MPI_Comm_size(group, ranks, ierror)
    call MPI_Allreduce(life, greatest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, group, ierror)
#endif
    write (path, '(a, i0, a, i0)') 'ran-', int(greatest, int64), '-', rank
    open (newunit=unit, file=path, position='append')
  end subroutine join

  subroutine check_published()
    real(real64), pointer :: weight(:)
    integer(int64), pointer :: number
    integer :: i

    call mpidata_published('weight', weight)
    call must(associated(weight) .eqv. version > 0, 'published')
    if (version == 0) return
    call must(size(weight) == elements .and. all(abs(weight - [(i + version, i = 0, elements - 1)]) <= 0), 'weight')
    call mpidata_published('step', number)
    call must(number == version, 'step')
  end subroutine check_published

  subroutine put(status)
    integer, intent(out) :: status
    real(real32) :: u(6, 12), p(2, 3)
    integer :: first, last, count, before, other, row

    first = 12 * rank / ranks
    last = 12 * (rank + 1) / ranks
    u = real(alpha + step, real32)
    call mpidata_put('u', u(:, first + 1:last), start=[1, first + 1], ierror=status)
    if (status /= MPIDATA_SUCCESS .or. is_ragged == 0) return
    count = mod(simulation + step + rank, 4)
    before = sum([(mod(simulation + step + other, 4), other = 0, rank - 1)])
    do row = 1, count
      p(:, row) = real([64 * simulation + step, before + row - 1], real32)
    end do
    call mpidata_put('p', p(:, 1:count), ierror=status)
  end subroutine put

  subroutine ask(one, number, status)
    type(asked), intent(inout), target, asynchronous :: one
    integer, intent(in) :: number
    integer, intent(out) :: status
    integer :: rows, row, column

    rows = mod(simulation * 5 + step * 11 + rank * 3 + number * 7, most + 1)
    one%rows = rows
    if (allocated(one%x)) deallocate (one%x, one%y, one%k, one%v, one%call, one%n)
    allocate (one%x(3, rows), one%y(3, rows), one%k(rows), one%v(rows), one%call(rows), one%n(rows))
    do row = 1, rows
      one%x(:, row) = [(real(mod(simulation * 7 + step * 3 + rank * 5 + number + 3 * (row - 1) + column, 1000), real32), &
        column = 0, 2)]
      one%k(row) = 1000000_int64 * simulation + 1000 * step + row - 1
    end do
    one%y = -1
    one%v = -1
    one%call = -1
    one%n = -1
    call mpidata_infer_begin([mpidata_named('x', one%x), mpidata_named('k', one%k)], &
      [mpidata_named('y', one%y), mpidata_named('v', one%v), mpidata_named('call', one%call), mpidata_named('n', one%n)], &
      one%question, one%version, status)
  end subroutine ask

  subroutine check_answer(one)
    type(asked), intent(in) :: one
    integer :: column

    call must(one%version >= least, 'version of an answer')
    if (one%rows == 0) return
    do column = 0, 2
      call must(all(int(one%y(column + 1, :), int64) == &
        int(one%x(column + 1, :), int64) * (mod(one%version, 1000_int64) + column) + 1), 'y')
    end do
    call must(all(one%v == one%k + one%version), 'rows of one version')
    call must(one%call(1) > 0 .and. all(one%call == one%call(1)), 'rows of one call')
    call must(one%n(1) >= one%rows .and. all(one%n == one%n(1)), 'rows of the call')
  end subroutine check_answer

  subroutine take_answer()
    call mpidata_infer_wait(questions(open_now)%question)
    call must(questions(open_now)%question == 0, 'wait for an answer')
    call check_answer(questions(open_now))
    open_now = open_now - 1
  end subroutine take_answer

  !> Check the answers to open questions, for which mpidata_next has waited.
  subroutine check_left()
    do while (open_now > 0)
      call check_answer(questions(open_now))
      open_now = open_now - 1
    end do
  end subroutine check_left

  subroutine ask_some(status)
    integer, intent(out) :: status
    integer :: kind, more

    status = MPIDATA_SUCCESS
    if (mod(simulation * 7907_int64 + step * 104723_int64 + rank * 6151_int64 + seed, 100_int64) >= asks) return
    kind = mod(simulation * 3 + step * 5 + rank, 10)
    do more = 1, merge(1, kind - 2, kind < 5)
      if (open_now == most_open) exit
      call ask(questions(open_now + 1), open_now, status)
      if (status /= MPIDATA_SUCCESS) return
      open_now = open_now + 1
    end do
    if (kind < 5) call take_answer()
  end subroutine ask_some

end program loop
