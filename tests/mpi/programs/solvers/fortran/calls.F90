! Like calls.c, in Fortran: makes the calls that random_fields/calls.py has written to files. It calls the C functions
! of MPI, because the tests' Open MPI has no Fortran interface; in Fortran, MPI_COMM_WORLD is 0.
program solver
#ifdef CARRIED
  use mpidata_carried
#else
  use mpidata
#endif
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  integer(int64), parameter :: put = 1, block = 2, lend = 3, mapped = 4, indices = 5, strided = 6, killed = 7
  type :: memory_t
    integer(int8), pointer :: raw(:)
  end type memory_t
  type(memory_t) :: held(64) ! until the step is sent
  integer :: n_held = 0, simulation, step, steps, unit, rank = 0
  character(64) :: argument, path
  real(real64) :: time

  call get_command_argument(1, argument)
  read (argument, *) steps
#ifdef CARRIED
  call mpidata_attach()
#else
  call join()
#endif
  do while (mpidata_next(simulation))
    do step = 0, steps - 1
      write (path, '(a, i0, a, i0, a, i0)') 'calls/', simulation, '-', step, '-', rank
      open (newunit=unit, file=path, access='stream', form='unformatted', status='old', action='read')
      do while (made_next())
      end do
      read (unit) time
      close (unit)
      call mpidata_step(time)
      call mpidata_wait()
      do n_held = n_held, 1, -1
        deallocate (held(n_held)%raw)
      end do
      n_held = 0
    end do
  end do
  call mpidata_finalize()
#ifndef CARRIED
  call leave()
#endif

contains

#ifndef CARRIED
  subroutine join()
    integer :: group
    integer(c_int) :: number
    interface
      integer(c_int) function MPI_Init(argc, argv) bind(c, name='MPI_Init')
        import :: c_int, c_ptr
        type(c_ptr), value :: argc, argv
      end function MPI_Init
      integer(c_int) function MPI_Comm_rank(comm, rank) bind(c, name='MPI_Comm_rank')
        import :: c_int, c_ptr
        type(c_ptr), value :: comm
        integer(c_int), intent(out) :: rank
      end function MPI_Comm_rank
      type(c_ptr) function MPI_Comm_f2c(comm) bind(c, name='MPI_Comm_f2c')
        import :: c_int, c_ptr
        integer(c_int), value :: comm
      end function MPI_Comm_f2c
    end interface

    if (MPI_Init(c_null_ptr, c_null_ptr) /= 0) error stop 'MPI_Init'
    call mpidata_init(0, group)
    if (MPI_Comm_rank(MPI_Comm_f2c(group), number) /= 0) error stop 'MPI_Comm_rank'
    rank = number
  end subroutine join

  subroutine leave()
    interface
      integer(c_int) function MPI_Finalize() bind(c, name='MPI_Finalize')
        import :: c_int
      end function MPI_Finalize
    end interface

    if (MPI_Finalize() /= 0) error stop 'MPI_Finalize'
  end subroutine leave
#endif

  ! Make the next call; .false. at the end of the step.
  logical function made_next()
    integer(int64) :: how, dtype, ndim, bytes, n
    integer(int64), allocatable :: shape_in_c(:)
    integer(int64), pointer :: extra(:), start(:), rows(:)
    character(64) :: name
    integer(int8), pointer :: raw(:)

    read (unit) how
    made_next = how /= 0
    if (.not. made_next) return
    read (unit) dtype, ndim, bytes, n
    allocate (shape_in_c(ndim), raw(max(1_int64, bytes)))
    read (unit) shape_in_c
    nullify (extra, start, rows)
    if (n >= 0) then
      allocate (extra(n))
      read (unit) extra
      extra = extra + 1
      if (how == mapped .or. how == indices) rows => extra
      if (how == put .or. how == block .or. how == lend .or. how == strided) start => extra
      if (associated(start)) start = start(n:1:-1)
    end if
    read (unit) name
    read (unit) raw(1:bytes)
    name = name(1:index(name, char(0)) - 1)
    n_held = n_held + 1
    held(n_held)%raw => raw
    if (how == killed) then
      call die_once(trim(name))
    else if (how == indices .and. dtype == DTYPE_int32) then
      call put_small(trim(name), raw, shape_in_c(ndim:1:-1), rows)
    else if (how == indices) then
      call put_large(trim(name), raw, shape_in_c(ndim:1:-1), rows)
    else
      call make(how, trim(name), raw, dtype, shape_in_c(ndim:1:-1), start, rows)
    end if
    if (associated(extra)) deallocate (extra)
  end function made_next

  subroutine die_once(name)
    character(*), intent(in) :: name
    integer :: marker, there
    interface
      integer(c_int) function raise(signal) bind(c)
        import :: c_int
        integer(c_int), value :: signal
      end function raise
    end interface

    open (newunit=marker, file=name, status='new', iostat=there)
    if (there /= 0) return
    close (marker)
    marker = raise(9_c_int)
  end subroutine die_once

  subroutine make(how, name, raw, dtype, extents, start, rows)
    integer(int64), intent(in) :: how, dtype, extents(:)
    character(*), intent(in) :: name
    integer(int8), pointer, intent(in) :: raw(:)
    integer(int64), pointer, intent(in) :: start(:), rows(:)

    select case (dtype)
#define CASE(NUMBER, KIND) case (NUMBER); call KIND(how, name, raw, extents, start, rows)
      CASE(DTYPE_float32, of_real32)
      CASE(DTYPE_float64, of_real64)
      CASE(DTYPE_int8, of_int8)
      CASE(DTYPE_uint8, of_int8)
      CASE(DTYPE_int16, of_int16)
      CASE(DTYPE_int32, of_int32)
      CASE(DTYPE_int64, of_int64)
      CASE(DTYPE_complex64, of_complex32)
      CASE(DTYPE_complex128, of_complex64)
      CASE(DTYPE_bool, of_logical)
    case default
      error stop 'a dtype of no kind'
    end select
  end subroutine make

#define NAME put_small
#define TYPE integer(int32)
#include "indices_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME put_large
#define TYPE integer(int64)
#include "indices_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_real32
#define TYPE real(real32)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_real64
#define TYPE real(real64)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_complex32
#define TYPE complex(real32)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_complex64
#define TYPE complex(real64)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_int8
#define TYPE integer(int8)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_int16
#define TYPE integer(int16)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_int32
#define TYPE integer(int32)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_int64
#define TYPE integer(int64)
#include "calls_of_kind.inc"
#undef NAME
#undef TYPE
#define NAME of_logical
#define TYPE logical(int8)
#include "calls_of_kind.inc"
end program solver
