!> mpidata: stream a running simulation into a neural network's training, from Fortran.
!>
!> A complete solver, with its five calls (init, next, put, step, finalize):
!>
!>     program solver
!>       use mpidata
!>       implicit none
!>       include 'mpif.h'
!>       integer :: group, simulation, step, ierror
!>       double precision :: alpha, u(64, 32)
!>       call MPI_Init(ierror)
!>       call mpidata_init(MPI_COMM_WORLD, group)    ! use group in place of MPI_COMM_WORLD
!>       do while (mpidata_next(simulation))
!>         call mpidata_param('alpha', alpha)
!>         u = 0
!>         do step = 1, 100
!>           call advance(u, alpha, group)
!>           call mpidata_put('temperature', u)      ! in the job file: shape: [32, 64]
!>           call mpidata_step(0.01d0 * step, ierror)
!>           if (ierror /= MPIDATA_SUCCESS) exit     ! MPIDATA_END: the job is stopping
!>         end do
!>       end do
!>       call mpidata_finalize()
!>       call MPI_Finalize(ierror)
!>     end program solver
!>
!> Building. `gfortran $(mpidata config --fflags) solver.f90 -o solver $(mpidata config --flibs)`, with the compiler
!> that mpidata was installed with. With another one, compile this file together with the solver, and link with
!> `mpidata config --libs`.
!>
!> Memory order. Nothing is transposed, as in HDF5's Fortran interface. The array `u(nx, ny)` is the field with
!> `shape: [ny, nx]` in the job file. Its element `u(i, j)` arrives in Python as `tensor[j-1, i-1]`. All indices here
!> are Fortran indices: `start` counts from 1, and its indices are in the order of the array's own dimensions.
!>
!> Communicators are integers: the handles of `mpif.h` and of `use mpi`. With `use mpi_f08` pass the component:
!> `call mpidata_init(MPI_COMM_WORLD%mpi_val, group%mpi_val)`.
!>
!> Kinds. A time or the value of a parameter is a real of any kind. All integers (`simulation`, `start`, `ierror`,
!> communicators) are integer(int32) or integer(int64). Code that is built with -fdefault-real-8 or -fdefault-integer-8
!> therefore needs no change. With -fdefault-real-8 alone, `double precision` and 0.5d0 are real(real128), which no
!> field accepts: add -fdefault-double-8.
!>
!> Errors. Every call has an optional last argument `ierror` (write `ierror=` if you omit `start`). It is set to
!> MPIDATA_SUCCESS, MPIDATA_END, MPIDATA_CANCELLED or an MPIDATA_ERR_ code. After an error mpidata_last_error() returns
!> the error message. Without `ierror` an error stops the program with that message (`error stop`). MPIDATA_END and
!> MPIDATA_CANCELLED are not errors.
!>
!> Threads. All calls of a process must come from one thread, the one that may call MPI. "Collective" means that every
!> rank of the group makes the call, in the same order. A "local" call needs no other rank.
!>
!> Without a job. A solver that is started outside a job runs one simulation, with parameters from MPIDATA_PARAM_<NAME>
!> in the environment (0 if unset). Puts are checked, and their data is dropped.
module mpidata
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_int, c_int32_t, c_int64_t, &
    c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, real128
  implicit none
  private

  public :: mpidata_init, mpidata_next, mpidata_param, mpidata_param_text
  public :: mpidata_put, mpidata_put_indices, mpidata_iput, mpidata_wait, mpidata_wait_for, mpidata_device_stream
  public :: mpidata_array, mpidata_named, mpidata_infer, mpidata_infer_begin, mpidata_infer_wait
  public :: mpidata_refresh, mpidata_published
  public :: mpidata_step, mpidata_fail, mpidata_finalize, mpidata_strerror, mpidata_last_error

  !> Status codes, as in mpidata.h.
  integer, parameter, public :: MPIDATA_SUCCESS = 0        !< no error
  integer, parameter, public :: MPIDATA_END = 1            !< no more simulations, or the job is stopping
  integer, parameter, public :: MPIDATA_ERR_ORDER = 2      !< a call at the wrong time
  integer, parameter, public :: MPIDATA_ERR_ARGUMENT = 3   !< an invalid argument
  integer, parameter, public :: MPIDATA_ERR_FIELD = 4      !< a field undeclared, put twice, or not put in a step
  integer, parameter, public :: MPIDATA_ERR_SHAPE = 5      !< the shape differs from the declared one
  integer, parameter, public :: MPIDATA_ERR_DTYPE = 6      !< a dtype neither declared nor converted to the declared one
  integer, parameter, public :: MPIDATA_ERR_BLOCK = 7      !< a block outside its field; an overlap or a gap
  integer, parameter, public :: MPIDATA_ERR_PARAMETER = 8  !< a parameter that the job file does not declare
  integer, parameter, public :: MPIDATA_ERR_JOB = 9        !< MPI_COMM_WORLD does not match the job, or no carrier
  integer, parameter, public :: MPIDATA_ERR_MPI = 10       !< an MPI call failed
  integer, parameter, public :: MPIDATA_ERR_MEMORY = 11    !< out of memory
  integer, parameter, public :: MPIDATA_ERR_WIRE = 12      !< a message that does not match the job
  integer, parameter, public :: MPIDATA_ERR_AGAIN = 13     !< nothing has been published yet
  integer, parameter, public :: MPIDATA_CANCELLED = 17     !< the simulation is cancelled: leave it, call mpidata_next
  integer, parameter, public :: MPIDATA_ERR_DEVICE = 18    !< a call of a device driver failed

  integer, parameter, public :: MPIDATA_MAX_NDIM = 6         !< largest number of dimensions of a field
  integer, parameter, public :: MPIDATA_MAX_TEXT = 256       !< size of a buffer for the text of any parameter

  ! As in mpidata.h.
  integer(c_int), parameter :: float32 = 1, float64 = 2, dtype_int32 = 3, dtype_int64 = 4, dtype_uint8 = 5, &
    dtype_int8 = 6, dtype_int16 = 7, dtype_bool = 11, complex64 = 14, complex128 = 15
  integer, parameter :: quad = merge(real128, real64, real128 > 0) ! not every compiler has real128

  !> An array of a question: `mpidata_named(name, values)`.
  type :: mpidata_array
    private
    character(kind=c_char) :: name(128) = c_null_char
    type(c_ptr) :: values = c_null_ptr
    integer(c_int) :: dtype = 0, ndim = 0
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM) = 0
  end type mpidata_array

  !> The same in C.
  type, bind(c) :: c_array
    type(c_ptr) :: name = c_null_ptr, values = c_null_ptr
    integer(c_int) :: dtype = 0, ndim = 0
    type(c_ptr) :: extents = c_null_ptr
  end type c_array

  !> `mpidata_named(name, values)`: an array of a question, and its name for the function of `inference`.
  !>
  !> values   contiguous array of 1 to 6 dimensions with the attributes `target, asynchronous`; its last dimension is
  !>          that of the rows. real(real32) and real(real64), integer(int8) to integer(int64), complex(real32) and
  !>          complex(real64) are float32, float64, int8 to int64, complex64 and complex128. Not copied
  interface mpidata_named
    procedure :: named_real32, named_real64, named_complex32, named_complex64
    procedure :: named_int8, named_int16, named_int32, named_int64
  end interface mpidata_named

  !> `call mpidata_init(world, group [, ierror])`: join the job.
  !>
  !> world   communicator of all ranks of the job: MPI_COMM_WORLD
  !> group   communicator of this rank's group; mpidata_finalize frees it
  !>
  !> Collective over `world`. Blocks, without spinning, until every rank of the job has joined. An error is also printed
  !> to stderr, because no job can report it yet.
  interface mpidata_init
    procedure :: init_int32, init_int64
  end interface mpidata_init

  !> `do while (mpidata_next(simulation [, ierror]))`: request the next simulation. This closes the current one, which
  !> then has the steps made so far.
  !>
  !> simulation   integer(int32) or integer(int64): its id, from 0, the same on all ranks of the group
  !>
  !> Returns `.true.`, or `.false.` when there are no more simulations (`ierror` is MPIDATA_END) and after an error.
  !> Collective over the group. Blocks, without spinning, until the scheduler has answered.
  interface mpidata_next
    procedure :: next_int32, next_int64
  end interface mpidata_next

  !> `call mpidata_put(field, values [, start] [, ierror])`: put a field, or a block of it, into the current sample.
  !>
  !> field    name, as under `fields:` in the job file
  !> values   scalar or array of up to 6 dimensions, or any section of one. It is copied, so it may be changed as soon
  !>          as the call returns. Its kind depends on the field's dtype: real(real32) for float32, real(real64) for
  !>          float64, integer(int8) for int8 and uint8 (the bytes are sent unchanged), integer(int16) for int16,
  !>          integer(int32) for int32, integer(int64) for int64, complex(real32) for complex64, complex(real64) for
  !>          complex128, and logical of any kind for bool. The call converts these, rounded to nearest: real(real64) if
  !>          float32 is declared, real(real64) or real(real32) if float16 or bfloat16 is, and complex(real64) if
  !>          complex64 is. Fortran has no kind for uint16, uint32 and uint64
  !> start    if omitted, `values` is the whole field, which exactly one rank of the group puts. Otherwise `values` is
  !>          this rank's block, and `start` the position of its first element in the field: one index for each
  !>          dimension, from 1
  !>
  !> If the field's shape contains the name of a length, `values` is this rank's part, and `start` is refused. The parts
  !> are joined along that dimension, in the order of the ranks, and of each rank's calls. A part may have the extent 0;
  !> all parts together have at most the declared limit. In each step at least one rank must put the field. `xy(2, n)`
  !> is a part of the field with `shape: [nodes, 2]`. Indices that count from 1 need `base: 1` in the job file.
  !>
  !> `call mpidata_put(field, values, at=at [, ierror=ierror])`: put rows in any order.
  !>
  !> at       indices of the field's rows, from 1, one for each row of `values`: row i of the values is row at(i) of the
  !>          field. Rows count along the dimension with the name of a length, or else along the last one. In a step all
  !>          ranks together put each row exactly once. Trainers get equal indices once: the last 16 different ones are
  !>          recognized
  !>
  !> Local. Blocks only while solvers.in_flight samples are in flight, because a trainer's buffer is full.
  interface mpidata_put
    procedure :: put_real32, put_real64, put_complex32, put_complex64, put_int8, put_int16, put_int32, put_int64
    procedure :: put_logical8, put_logical16, put_logical32, put_logical64
  end interface mpidata_put

  !> `call mpidata_put_indices(field, values [, at] [, ierror])`: put this rank's part of a field that is declared with
  !> `index` and whose values are local indices of this rank. They count from `base` in the job file; use 1 for Fortran.
  !>
  !> values   integer(int32) or integer(int64), as declared
  !> at       the index in the whole field, from 1, of local index 1, 2, ... of this rank, including ghost rows. If
  !>          omitted, the trainer adds the number of rows that the ranks before this one have put along the length of
  !>          `index`
  interface mpidata_put_indices
    procedure :: put_indices_int32, put_indices_int64
  end interface mpidata_put_indices

  !> `call mpidata_iput(field, values [, start] [, ierror])`: as mpidata_put, without the copy.
  !>
  !> The array is lent to the library until mpidata_wait or mpidata_wait_for returns: do not change or free it before.
  !> An array that is converted, or is logical, is still copied. Give the array the attributes `target, asynchronous`.
  !> It must be contiguous; a section that is not contiguous is an error. An expression, or a dummy argument with
  !> `intent(in)`, does not compile: `values` is `intent(inout)`, because the library keeps it.
  interface mpidata_iput
    procedure :: iput_real32, iput_real64, iput_complex32, iput_complex64, iput_int8, iput_int16, iput_int32, iput_int64
    procedure :: iput_logical8, iput_logical16, iput_logical32, iput_logical64
  end interface mpidata_iput

  !> `call mpidata_published(name, values [, ierror])`: get an array that was published, as of the last mpidata_refresh.
  !>
  !> name     as in mpidata.publish
  !> values   pointer of 0 to 6 dimensions to the published values: real(real32), real(real64), complex(real32),
  !>          complex(real64), integer(int8), also for uint8 and bool, or integer of another kind, as in mpidata_put. A
  !>          tensor of shape [n, m] is `values(m, n)`. Read-only, and valid until the next mpidata_refresh. Another
  !>          kind or number of dimensions is an error. null() if nothing has been published yet: `ierror` is then
  !>          MPIDATA_ERR_AGAIN; without `ierror` this does not stop the program
  !>
  !> Local; does not block.
  interface mpidata_published
    procedure :: published_real32, published_real64, published_complex32, published_complex64
    procedure :: published_int8, published_int16, published_int32, published_int64
  end interface mpidata_published

  !> The C functions. One argument list for put, put_block and iput.
  interface
    integer(c_int) function c_init(world, group) bind(c, name='mpidata_init_f')
      import :: c_int
      integer(c_int), value :: world
      integer(c_int), intent(out) :: group
    end function c_init
    integer(c_int) function c_next(simulation) bind(c, name='mpidata_next')
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(out) :: simulation
    end function c_next
    integer(c_int) function c_param(name, value) bind(c, name='mpidata_param')
      import :: c_int, c_char, c_double
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), intent(out) :: value
    end function c_param
    integer(c_int) function c_param_text(name, text, size) bind(c, name='mpidata_param_text')
      import :: c_int, c_char, c_size_t
      character(kind=c_char), intent(in) :: name(*)
      character(kind=c_char), intent(out) :: text(*)
      integer(c_size_t), value :: size
    end function c_param_text
    integer(c_int) function c_put(field, values, dtype, ndim, shape) bind(c, name='mpidata_put')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: field(*)
      type(c_ptr), value :: values
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: shape(*)
    end function c_put
    integer(c_int) function c_put_block(field, values, dtype, ndim, shape, start) bind(c, name='mpidata_put_block')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: field(*)
      type(c_ptr), value :: values
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: shape(*), start(*)
    end function c_put_block
    integer(c_int) function c_put_mapped(field, values, dtype, ndim, shape, map) bind(c, name='mpidata_put_mapped')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: field(*)
      type(c_ptr), value :: values
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: map
    end function c_put_mapped
    integer(c_int) function c_put_indices(field, values, dtype, ndim, shape, map) bind(c, name='mpidata_put_indices')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: field(*)
      type(c_ptr), value :: values
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: map
    end function c_put_indices
    integer(c_int) function c_map_known(n, indices, base, map) bind(c, name='mpidata_map_known')
      import :: c_int, c_ptr, c_int64_t
      integer(c_int64_t), value :: n, base
      integer(c_int64_t), intent(in) :: indices(*)
      type(c_ptr), intent(out) :: map
    end function c_map_known
    integer(c_int) function c_iput(field, values, dtype, ndim, shape, start) bind(c, name='mpidata_iput')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: field(*)
      type(c_ptr), value :: values
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: start
    end function c_iput
    integer(c_int) function c_declared_dtype(field) bind(c, name='mpidata_declared_dtype')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: field(*)
    end function c_declared_dtype
    integer(c_int) function c_wait_for(values) bind(c, name='mpidata_wait_for')
      import :: c_int, c_ptr
      type(c_ptr), value :: values
    end function c_wait_for
    integer(c_int) function c_wait() bind(c, name='mpidata_wait')
      import :: c_int
    end function c_wait
    integer(c_int) function c_device_stream(stream) bind(c, name='mpidata_device_stream')
      import :: c_int, c_ptr
      type(c_ptr), value :: stream
    end function c_device_stream
    integer(c_int) function c_step(time) bind(c, name='mpidata_step')
      import :: c_int, c_double
      real(c_double), value :: time
    end function c_step
    integer(c_int) function c_misuse(status, what, advice) bind(c, name='mpidata_misuse')
      import :: c_int, c_char
      integer(c_int), value :: status
      character(kind=c_char), intent(in) :: what(*), advice(*)
    end function c_misuse
    integer(c_int) function c_infer_begin(inputs, n_in, outputs, n_out, version, question) bind(c, name='mpidata_infer_begin')
      import :: c_int, c_int64_t, c_ptr, c_array
      type(c_array), intent(in) :: inputs(*), outputs(*)
      integer(c_int), value :: n_in, n_out
      type(c_ptr), value :: version
      integer(c_int64_t), intent(out) :: question
    end function c_infer_begin
    integer(c_int) function c_infer_wait(question) bind(c, name='mpidata_infer_wait')
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(inout) :: question
    end function c_infer_wait
    integer(c_int) function c_refresh(version) bind(c, name='mpidata_refresh')
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(out) :: version
    end function c_refresh
    integer(c_int) function c_published_as(name, dtype, ndim, shape, values) bind(c, name='mpidata_published_as')
      import :: c_int, c_char, c_ptr, c_int64_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dtype, ndim
      integer(c_int64_t), intent(out) :: shape(*)
      type(c_ptr), intent(out) :: values
    end function c_published_as
    integer(c_int) function c_fail(reason) bind(c, name='mpidata_fail')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: reason(*)
    end function c_fail
    integer(c_int) function c_finalize() bind(c, name='mpidata_finalize')
      import :: c_int
    end function c_finalize
    type(c_ptr) function c_strerror(status) bind(c, name='mpidata_strerror')
      import :: c_int, c_ptr
      integer(c_int), value :: status
    end function c_strerror
    type(c_ptr) function c_last_error() bind(c, name='mpidata_last_error')
      import :: c_ptr
    end function c_last_error
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function c_strlen
  end interface

contains

  subroutine init_int32(world, group, ierror)
    class(*), intent(in) :: world
    integer(int32), intent(out) :: group
    class(*), intent(out), optional :: ierror
    integer(c_int) :: handle, status

    status = c_init(int(whole(world), c_int), handle)
    group = int(handle, int32)
    call finish(status, ierror)
  end subroutine init_int32

  subroutine init_int64(world, group, ierror)
    class(*), intent(in) :: world
    integer(int64), intent(out) :: group
    class(*), intent(out), optional :: ierror
    integer(int32) :: handle

    call init_int32(world, handle, ierror)
    group = handle
  end subroutine init_int64

  logical function next_int64(simulation, ierror) result(more)
    integer(int64), intent(out) :: simulation
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: id
    integer(c_int) :: status

    id = -1
    status = c_next(id)
    simulation = id
    more = status == MPIDATA_SUCCESS
    call finish(status, ierror)
  end function next_int64

  logical function next_int32(simulation, ierror) result(more)
    integer(int32), intent(out) :: simulation
    class(*), intent(out), optional :: ierror
    integer(int64) :: id

    more = next_int64(id, ierror)
    simulation = int(id, int32)
  end function next_int32

  !> Get the value of a parameter of the current simulation. Local; does not block.
  subroutine mpidata_param(name, value, ierror)
    character(*), intent(in) :: name            !< as under `parameters: space:` in the job file
    class(*), intent(out) :: value              !< a real; or an integer, if the value is a whole number
    class(*), intent(out), optional :: ierror
    real(c_double) :: number
    integer(c_int) :: status

    number = 0
    status = c_param(c_string(name), number)
    select type (value)
    type is (integer(int32))
      if (abs(number) > huge(value) .or. abs(number - anint(number)) > 0) status = not_whole(name)
      if (status == MPIDATA_SUCCESS) value = int(number, int32)
    type is (integer(int64))
      if (abs(number) > 2d0**53 .or. abs(number - anint(number)) > 0) status = not_whole(name)
      if (status == MPIDATA_SUCCESS) value = int(number, int64)
    type is (real(real32))
      value = as_real32(number)
    type is (real(real64))
      value = number
    class default
      select type (value)
      type is (real(quad))
        value = number
      class default
        error stop 'mpidata_param: value is neither a real nor an integer'
      end select
    end select
    call finish(status, ierror)
  end subroutine mpidata_param

  !> Get the text of a parameter of the current simulation, if the job file gives texts. Local; does not block.
  subroutine mpidata_param_text(name, text, ierror)
    character(*), intent(in) :: name            !< as under `parameters: space:` in the job file
    character(*), intent(out) :: text           !< its text, padded with blanks; an error if too short
    class(*), intent(out), optional :: ierror
    character(len(text) + 1, kind=c_char) :: found

    call finish(c_param_text(c_string(name), found, len(found, c_size_t)), ierror)
    text = found(:index(found, c_null_char) - 1)
  end subroutine mpidata_param_text

  integer(c_int) function not_whole(name) result(status)
    character(*), intent(in) :: name

    status = c_misuse(int(MPIDATA_ERR_PARAMETER, c_int), &
      c_string("Parameter '" // trim(name) // "' is not a whole number, or too large for the variable"), &
      c_string('Pass a real variable.'))
  end function not_whole

  !> Round to nearest, also in a program that has floating-point traps (-ffpe-trap) or another rounding mode.
  function as_real32(number) result(value)
    use, intrinsic :: ieee_arithmetic, only: ieee_get_status, ieee_set_status, ieee_status_type, ieee_set_halting_mode, &
      ieee_all, ieee_set_rounding_mode, ieee_nearest
    real(real64), intent(in) :: number
    real(real32), volatile :: value             ! volatile: the compiler leaves the conversion where it stands
    type(ieee_status_type) :: status

    call ieee_get_status(status)
    call ieee_set_halting_mode(ieee_all, .false.)
    call ieee_set_rounding_mode(ieee_nearest)
    value = real(number, real32)
    call ieee_set_status(status)
  end function as_real32

  !> Get what a trainer has published since the last call: all of it, of one version. Collective over the group, between
  !> mpidata_init and mpidata_finalize. Blocks, without spinning, until a trainer has answered, which it does at once.
  subroutine mpidata_refresh(version, ierror)
    class(*), intent(out) :: version            !< an integer: 1, 2, ...; 0: nothing has been published yet
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: number
    integer(c_int) :: status

    number = 0
    status = c_refresh(number)
    select type (version)
    type is (integer(int32))
      version = int(number, int32)
    type is (integer(int64))
      version = number
    class default
      error stop 'mpidata_refresh: version is neither integer(int32) nor integer(int64)'
    end select
    call finish(status, ierror)
  end subroutine mpidata_refresh

  subroutine published_real32(name, values, ierror)
    character(*), intent(in) :: name
    real(real32), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, float32, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_real32

  subroutine published_real64(name, values, ierror)
    character(*), intent(in) :: name
    real(real64), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, float64, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_real64

  subroutine published_complex32(name, values, ierror)
    character(*), intent(in) :: name
    complex(real32), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, complex64, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_complex32

  subroutine published_complex64(name, values, ierror)
    character(*), intent(in) :: name
    complex(real64), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, complex128, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_complex64

  subroutine published_int8(name, values, ierror)
    character(*), intent(in) :: name
    integer(int8), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, dtype_int8, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_int8

  subroutine published_int16(name, values, ierror)
    character(*), intent(in) :: name
    integer(int16), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, dtype_int16, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_int16

  subroutine published_int32(name, values, ierror)
    character(*), intent(in) :: name
    integer(int32), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, dtype_int32, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_int32

  subroutine published_int64(name, values, ierror)
    character(*), intent(in) :: name
    integer(int64), pointer, intent(inout) :: values(..)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: extents(MPIDATA_MAX_NDIM)
    type(c_ptr) :: address

    address = published_at(name, dtype_int64, rank(values), extents, ierror)
    select rank (values)
    rank (0)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values)
    rank (1)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:1))
    rank (2)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:2))
    rank (3)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:3))
    rank (4)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:4))
    rank (5)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:5))
    rank (6)
      nullify (values)
      if (c_associated(address)) call c_f_pointer(address, values, extents(:6))
    end select
  end subroutine published_int64

  !> Address of a published array, with its extents in Fortran's order; null if there is none.
  type(c_ptr) function published_at(name, dtype, ndim, extents, ierror) result(address)
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: dtype
    integer, intent(in) :: ndim
    integer(c_int64_t), intent(out) :: extents(MPIDATA_MAX_NDIM)
    class(*), intent(out), optional :: ierror
    integer(c_int) :: status

    extents = 1
    status = c_published_as(c_string(name), dtype, int(ndim, c_int), extents, address)
    extents(:ndim) = reversed(extents(:ndim))
    if (status /= MPIDATA_SUCCESS) address = c_null_ptr
    if (status == MPIDATA_ERR_AGAIN .and. .not. present(ierror)) return
    call finish(status, ierror)
  end function published_at

  ! `contiguous` makes the compiler pass any section as a packed copy, and a contiguous array without a copy.
  subroutine put_real32(field, values, start, ierror, at)
    character(*), intent(in) :: field
    real(real32), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), float32, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_real32

  subroutine put_real64(field, values, start, ierror, at)
    character(*), intent(in) :: field
    real(real64), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), float64, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_real64

  subroutine put_int32(field, values, start, ierror, at)
    character(*), intent(in) :: field
    integer(int32), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), dtype_int32, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_int32

  subroutine put_int64(field, values, start, ierror, at)
    character(*), intent(in) :: field
    integer(int64), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), dtype_int64, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_int64

  subroutine put_int8(field, values, start, ierror, at)
    character(*), intent(in) :: field
    integer(int8), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), byte_dtype(field), int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_int8

  subroutine put_complex32(field, values, start, ierror, at)
    character(*), intent(in) :: field
    complex(real32), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), complex64, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_complex32

  subroutine put_complex64(field, values, start, ierror, at)
    character(*), intent(in) :: field
    complex(real64), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), complex128, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_complex64

  subroutine put_int16(field, values, start, ierror, at)
    character(*), intent(in) :: field
    integer(int16), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(values), dtype_int16, int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_int16

  ! Compilers store .true. in different ways, and the bytes must be 0 or 1.
  subroutine put_logical8(field, values, start, ierror, at)
    character(*), intent(in) :: field
    logical(int8), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)
    logical(int8), pointer :: flat(:)

    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_logical8

  subroutine put_logical16(field, values, start, ierror, at)
    character(*), intent(in) :: field
    logical(int16), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)
    logical(int16), pointer :: flat(:)

    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_logical16

  subroutine put_logical32(field, values, start, ierror, at)
    character(*), intent(in) :: field
    logical(int32), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)
    logical(int32), pointer :: flat(:)

    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_logical32

  subroutine put_logical64(field, values, start, ierror, at)
    character(*), intent(in) :: field
    logical(int64), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)
    logical(int64), pointer :: flat(:)

    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror, at)
  end subroutine put_logical64

  subroutine put_indices_int32(field, values, at, ierror)
    character(*), intent(in) :: field
    integer(int32), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: at(:)
    class(*), intent(out), optional :: ierror

    call put_local(field, c_loc(values), dtype_int32, int(shape(values), c_int64_t), at, ierror)
  end subroutine put_indices_int32

  subroutine put_indices_int64(field, values, at, ierror)
    character(*), intent(in) :: field
    integer(int64), intent(in), contiguous, target :: values(..)
    class(*), intent(in), optional :: at(:)
    class(*), intent(out), optional :: ierror

    call put_local(field, c_loc(values), dtype_int64, int(shape(values), c_int64_t), at, ierror)
  end subroutine put_indices_int64

  ! No `contiguous` here: a packed copy, or the value of an expression, would be freed before the library has read it.
  subroutine iput_real32(field, values, start, ierror)
    character(*), intent(in) :: field
    real(real32), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), float32, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_real32

  subroutine iput_real64(field, values, start, ierror)
    character(*), intent(in) :: field
    real(real64), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), float64, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_real64

  subroutine iput_int32(field, values, start, ierror)
    character(*), intent(in) :: field
    integer(int32), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), dtype_int32, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_int32

  subroutine iput_int64(field, values, start, ierror)
    character(*), intent(in) :: field
    integer(int64), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), dtype_int64, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_int64

  subroutine iput_int8(field, values, start, ierror)
    character(*), intent(in) :: field
    integer(int8), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), byte_dtype(field), int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_int8

  subroutine iput_complex32(field, values, start, ierror)
    character(*), intent(in) :: field
    complex(real32), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), complex64, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_complex32

  subroutine iput_complex64(field, values, start, ierror)
    character(*), intent(in) :: field
    complex(real64), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), complex128, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_complex64

  subroutine iput_int16(field, values, start, ierror)
    character(*), intent(in) :: field
    integer(int16), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror

    call iput(field, c_loc(values), is_contiguous(values), dtype_int16, int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_int16

  ! The library copies values that are put as bool, so the array made here may be freed when this returns.
  subroutine iput_logical8(field, values, start, ierror)
    character(*), intent(in) :: field
    logical(int8), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    logical(int8), pointer :: flat(:)

    if (.not. lendable(field, is_contiguous(values), ierror)) return
    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_logical8

  subroutine iput_logical16(field, values, start, ierror)
    character(*), intent(in) :: field
    logical(int16), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    logical(int16), pointer :: flat(:)

    if (.not. lendable(field, is_contiguous(values), ierror)) return
    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_logical16

  subroutine iput_logical32(field, values, start, ierror)
    character(*), intent(in) :: field
    logical(int32), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    logical(int32), pointer :: flat(:)

    if (.not. lendable(field, is_contiguous(values), ierror)) return
    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_logical32

  subroutine iput_logical64(field, values, start, ierror)
    character(*), intent(in) :: field
    logical(int64), intent(inout), target, asynchronous :: values(..)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    logical(int64), pointer :: flat(:)

    if (.not. lendable(field, is_contiguous(values), ierror)) return
    call c_f_pointer(c_loc(values), flat, [size(values, kind=c_int64_t)])
    call put_bool(field, merge(1_int8, 0_int8, flat), int(shape(values), c_int64_t), start, ierror)
  end subroutine iput_logical64

  !> Wait until the arrays that were passed to mpidata_iput before the last mpidata_step may be changed again.
  !>
  !> Local. Blocks, without spinning, until the trainers have received the arrays.
  subroutine mpidata_wait(ierror)
    class(*), intent(out), optional :: ierror

    call finish(c_wait(), ierror)
  end subroutine mpidata_wait

  !> `call mpidata_device_stream(stream [, ierror])`: set the stream that all following puts of device memory wait for.
  !>
  !> stream  type(c_ptr), a CUDA or HIP stream, for example that of acc_get_cuda_stream. The initial value, c_null_ptr,
  !>         is the default stream, which waits for all streams that were not created as non-blocking ones
  !>
  !> mpidata_put and mpidata_put_indices take arrays in device memory: between `!$acc host_data use_device(u)` and its
  !> end, or of OpenMP's `use_device_addr`. They must be contiguous, and not logical. Local; does not block.
  subroutine mpidata_device_stream(stream, ierror)
    type(c_ptr), intent(in) :: stream
    class(*), intent(out), optional :: ierror

    call finish(c_device_stream(stream), ierror)
  end subroutine mpidata_device_stream

  !> As mpidata_wait, for one array that was passed to mpidata_iput. Other arrays may still be in flight. Returns at
  !> once if the array is not lent.
  subroutine mpidata_wait_for(values, ierror)
    type(*), intent(in), target, asynchronous :: values(..)
    class(*), intent(out), optional :: ierror

    call finish(c_wait_for(c_loc(values)), ierror)
  end subroutine mpidata_wait_for

  !> `call mpidata_infer(inputs, outputs [, version] [, ierror])`: send a question to an inference rank, and wait for
  !> the answer.
  !>
  !> For example, `call mpidata_infer([mpidata_named('x', x)], [mpidata_named('y', y)])`. The last extent of all arrays
  !> is the same: the number of rows of this question, which may be 0. When the job is stopping, `ierror` is
  !> MPIDATA_END. Local. Blocks, without spinning, until the answer has arrived.
  subroutine mpidata_infer(inputs, outputs, version, ierror)
    type(mpidata_array), intent(in), target :: inputs(:)       !< the arrays that the function gets
    type(mpidata_array), intent(in), target :: outputs(:)      !< the arrays that it returns; filled
    integer(int64), intent(out), optional, target :: version   !< of the weights; 0: none were published
    class(*), intent(out), optional :: ierror
    integer(c_int64_t) :: question
    integer(c_int) :: status

    status = ask(inputs, outputs, question, version)
    if (status == MPIDATA_SUCCESS) status = c_infer_wait(question)
    call finish(status, ierror)
  end subroutine mpidata_infer

  !> As mpidata_infer, but returns at once: no array may be changed or freed before mpidata_infer_wait returns. At most
  !> 8 questions may be open; mpidata_next and mpidata_finalize wait for open questions.
  subroutine mpidata_infer_begin(inputs, outputs, question, version, ierror)
    type(mpidata_array), intent(in), target :: inputs(:), outputs(:)
    integer(int64), intent(out) :: question                    !< for mpidata_infer_wait
    integer(int64), intent(out), optional, target, asynchronous :: version
    class(*), intent(out), optional :: ierror

    call finish(ask(inputs, outputs, question, version), ierror)
  end subroutine mpidata_infer_begin

  !> Wait until a question is answered, and set it to 0. Returns at once if it is 0.
  subroutine mpidata_infer_wait(question, ierror)
    integer(int64), intent(inout) :: question
    class(*), intent(out), optional :: ierror

    call finish(c_infer_wait(question), ierror)
  end subroutine mpidata_infer_wait

  integer(c_int) function ask(inputs, outputs, question, version) result(status)
    type(mpidata_array), intent(in), target :: inputs(:), outputs(:)
    integer(c_int64_t), intent(out) :: question
    integer(int64), intent(inout), optional, target :: version
    type(c_ptr) :: place

    place = c_null_ptr
    if (present(version)) then
      version = 0
      place = c_loc(version)
    end if
    status = c_infer_begin(in_c(inputs), size(inputs, kind=c_int), in_c(outputs), size(outputs, kind=c_int), place, question)
  end function ask

  function in_c(arrays) result(listed)
    type(mpidata_array), intent(in), target :: arrays(:)
    type(c_array) :: listed(size(arrays))
    integer :: i

    do i = 1, size(arrays)
      listed(i) = c_array(c_loc(arrays(i)%name), arrays(i)%values, arrays(i)%dtype, arrays(i)%ndim, c_loc(arrays(i)%extents))
    end do
  end function in_c

  function named(name, values, dtype, extents) result(array)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: values
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: extents(:)
    type(mpidata_array) :: array
    integer :: i

    do i = 1, min(len_trim(name), size(array%name) - 1)
      array%name(i) = name(i:i)
    end do
    array%values = values
    array%dtype = dtype
    array%ndim = size(extents, kind=c_int)
    if (size(extents) <= MPIDATA_MAX_NDIM) array%extents(:size(extents)) = reversed(extents)
  end function named

  function named_real32(name, values) result(array)
    character(*), intent(in) :: name
    real(real32), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), float32, int(shape(values), c_int64_t))
  end function named_real32

  function named_real64(name, values) result(array)
    character(*), intent(in) :: name
    real(real64), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), float64, int(shape(values), c_int64_t))
  end function named_real64

  function named_complex32(name, values) result(array)
    character(*), intent(in) :: name
    complex(real32), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), complex64, int(shape(values), c_int64_t))
  end function named_complex32

  function named_complex64(name, values) result(array)
    character(*), intent(in) :: name
    complex(real64), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), complex128, int(shape(values), c_int64_t))
  end function named_complex64

  function named_int8(name, values) result(array)
    character(*), intent(in) :: name
    integer(int8), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), dtype_int8, int(shape(values), c_int64_t))
  end function named_int8

  function named_int16(name, values) result(array)
    character(*), intent(in) :: name
    integer(int16), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), dtype_int16, int(shape(values), c_int64_t))
  end function named_int16

  function named_int32(name, values) result(array)
    character(*), intent(in) :: name
    integer(int32), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), dtype_int32, int(shape(values), c_int64_t))
  end function named_int32

  function named_int64(name, values) result(array)
    character(*), intent(in) :: name
    integer(int64), intent(in), contiguous, target, asynchronous :: values(..)
    type(mpidata_array) :: array

    array = named(name, c_loc(values), dtype_int64, int(shape(values), c_int64_t))
  end function named_int64

  !> Commit the sample: everything put since the last step becomes one sample, which a trainer sees whole or not at all.
  !>
  !> When the job is stopping, `ierror` is MPIDATA_END: leave the simulation and finalize. When the simulation is
  !> cancelled, `ierror` is MPIDATA_CANCELLED, as after each put until mpidata_next: leave the simulation. Collective
  !> over the group. Does not block unless solvers.in_flight samples are in flight.
  subroutine mpidata_step(time, ierror)
    class(*), intent(in) :: time                !< physical time, in the solver's units: finite, the same on all ranks
    class(*), intent(out), optional :: ierror
    real(c_double) :: number

    select type (time)
    type is (real(real64))
      number = time
    type is (real(real32))
      number = time
    class default
      select type (time)
      type is (real(quad))
        number = real(time, c_double)
      class default
        number = real(whole(time), c_double)
      end select
    end select
    call finish(c_step(number), ierror)
  end subroutine mpidata_step

  !> Abandon the current simulation, for example because it diverged: it is set aside and not tried again. Then call
  !> mpidata_next. Samples already committed stay with the trainers.
  !>
  !> Collective over the group.
  subroutine mpidata_fail(reason, ierror)
    character(*), intent(in) :: reason          !< one sentence for the log; that of the group's rank 0 counts
    class(*), intent(out), optional :: ierror

    call finish(c_fail(c_string(reason)), ierror)
  end subroutine mpidata_fail

  !> Close the current simulation if there is one, send the remaining samples, and leave the job. Call it before
  !> MPI_Finalize.
  !>
  !> Collective over the group. Blocks, without spinning, until the trainers have received every sample of this rank.
  subroutine mpidata_finalize(ierror)
    class(*), intent(out), optional :: ierror

    call finish(c_finalize(), ierror)
  end subroutine mpidata_finalize

  !> Return the meaning of a status code.
  function mpidata_strerror(status) result(text)
    class(*), intent(in) :: status
    character(:), allocatable :: text

    text = f_string(c_strerror(int(whole(status), c_int)))
  end function mpidata_strerror

  !> Return the message of the last error: what went wrong, where, and how to fix it; '' if there was none.
  function mpidata_last_error() result(text)
    character(:), allocatable :: text

    text = f_string(c_last_error())
  end function mpidata_last_error

  subroutine put(field, values, dtype, extents, start, ierror, at)
    character(*), intent(in) :: field
    type(c_ptr), intent(in) :: values
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: extents(:)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)
    type(c_ptr) :: map
    integer(c_int) :: ndim

    if (.not. fits(field, extents, start, ierror)) return
    ndim = int(size(extents), c_int)
    if (present(at)) then
      if (.not. is_map(field, at, map, ierror, present(start))) return
      call finish(c_put_mapped(c_string(field), values, dtype, ndim, reversed(extents), map), ierror)
    else if (present(start)) then
      call finish(c_put_block(c_string(field), values, dtype, ndim, reversed(extents), &
        first_of(start)), ierror)
    else
      call finish(c_put(c_string(field), values, dtype, ndim, reversed(extents)), ierror)
    end if
  end subroutine put

  subroutine iput(field, values, whole, dtype, extents, start, ierror)
    character(*), intent(in) :: field
    type(c_ptr), intent(in) :: values
    logical, intent(in) :: whole
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: extents(:)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    integer(c_int64_t), target :: first(max(1, size(extents)))
    type(c_ptr) :: place

    if (.not. fits(field, extents, start, ierror)) return
    if (.not. lendable(field, whole, ierror)) return
    place = c_null_ptr
    if (present(start)) then
      first(:size(extents)) = first_of(start)
      place = c_loc(first)
    end if
    call finish(c_iput(c_string(field), values, dtype, int(size(extents), c_int), reversed(extents), place), ierror)
  end subroutine iput

  !> Put local indices, which the library translates.
  subroutine put_local(field, values, dtype, extents, at, ierror)
    character(*), intent(in) :: field
    type(c_ptr), intent(in) :: values
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in) :: extents(:)
    class(*), intent(in), optional :: at(:)
    class(*), intent(out), optional :: ierror
    type(c_ptr) :: map

    if (.not. fits(field, extents, ierror=ierror)) return
    map = c_null_ptr
    if (present(at)) then
      if (.not. is_map(field, at, map, ierror)) return
    end if
    call finish(c_put_indices(c_string(field), values, dtype, int(size(extents), c_int), &
      reversed(extents), map), ierror)
  end subroutine put_local

  !> Get the map of these indices, which count from 1; false after an error.
  logical function is_map(field, at, map, ierror, has_start)
    character(*), intent(in) :: field
    class(*), intent(in) :: at(:)
    type(c_ptr), intent(out) :: map
    class(*), intent(inout), optional :: ierror
    logical, intent(in), optional :: has_start
    integer(c_int64_t), allocatable :: indices(:)
    integer(c_int) :: status

    is_map = .false.
    if (present(has_start)) then
      if (has_start) call refuse("Field '" // trim(field) // "': both start and at were given", &
        'Give start for a block, at for rows in any order.', ierror)
      if (has_start) return
    end if
    allocate (indices(size(at)))
    select type (at)
    type is (integer(int32))
      indices(:) = int(at, c_int64_t)
    type is (integer(int64))
      indices(:) = at
    class default
      error stop 'mpidata: at is neither integer(int32) nor integer(int64)'
    end select
    status = c_map_known(size(indices, kind=c_int64_t), indices, 1_c_int64_t, map)
    is_map = status == MPIDATA_SUCCESS
    if (.not. is_map) call finish(status, ierror)
  end function is_map

  !> Put values that are 0 or 1, which the library copies.
  subroutine put_bool(field, bytes, extents, start, ierror, at)
    character(*), intent(in) :: field
    integer(int8), intent(in), contiguous, target :: bytes(:)
    integer(c_int64_t), intent(in) :: extents(:)
    class(*), intent(in), optional :: start(:)
    class(*), intent(out), optional :: ierror
    class(*), intent(in), optional :: at(:)

    call put(field, c_loc(bytes), dtype_bool, extents, start, ierror, at)
  end subroutine put_bool

  !> The dtype of integer(int8), also for unsigned fields: there are no unsigned integers in Fortran.
  integer(c_int) function byte_dtype(field)
    character(*), intent(in) :: field

    byte_dtype = dtype_int8
    if (c_declared_dtype(c_string(field)) == dtype_uint8) byte_dtype = dtype_uint8
  end function byte_dtype

  !> Whether an array can be sent without a copy; else an error.
  logical function lendable(field, whole, ierror)
    character(*), intent(in) :: field
    logical, intent(in) :: whole
    class(*), intent(inout), optional :: ierror

    lendable = whole
    if (.not. whole) call refuse("Field '" // trim(field) // "': mpidata_iput got an array section that is not " // &
      'contiguous', 'It is sent without a copy: pass a contiguous array, or use mpidata_put.', ierror)
  end function lendable

  !> Whether all extents are known, and `start` has one index per dimension; else an error.
  logical function fits(field, extents, start, ierror)
    character(*), intent(in) :: field
    integer(c_int64_t), intent(in) :: extents(:)
    class(*), intent(in), optional :: start(:)
    class(*), intent(inout), optional :: ierror
    character(80) :: counts

    fits = all(extents >= 0)
    if (.not. fits) call refuse("Field '" // trim(field) // "': extent -1: an assumed-size array, u(*), whose last " // &
      'extent is not known, was put', 'Pass a section with its extents: u(1:n) instead of u. gfortran takes an empty ' // &
      'pointer, array constructor or section with gaps for one: put an empty allocatable array, or nothing.', ierror)
    if (.not. (fits .and. present(start))) return
    fits = size(start) == size(extents)
    if (fits) return
    write (counts, '(a, i0, a, i0, a)') ' has ', size(extents), ' dimensions but start has ', size(start), ' indices'
    call refuse("Field '" // trim(field) // "': the block" // trim(counts), &
      'Give one index per dimension, from 1.', ierror)
  end function fits

  !> End a call: return the status, or stop the program on an error.
  subroutine finish(status, ierror)
    integer(c_int), intent(in) :: status
    class(*), intent(out), optional :: ierror
    character(:), allocatable :: sentence

    if (present(ierror)) then
      select type (ierror)
      type is (integer(int32))
        ierror = int(status, int32)
      type is (integer(int64))
        ierror = int(status, int64)
      class default
        error stop 'mpidata: ierror is neither integer(int32) nor integer(int64)'
      end select
    else if (status /= MPIDATA_SUCCESS .and. status /= MPIDATA_END .and. status /= MPIDATA_CANCELLED) then
      sentence = 'mpidata: ' // mpidata_last_error()
      error stop sentence
    end if
  end subroutine finish

  !> As finish, for a mistake found in this module: the job ends with it, as with those that the library finds.
  subroutine refuse(what, advice, ierror)
    character(*), intent(in) :: what, advice
    class(*), intent(out), optional :: ierror

    call finish(c_misuse(int(MPIDATA_ERR_ARGUMENT, c_int), c_string(what), c_string(advice)), ierror)
  end subroutine refuse

  !> An integer of either kind.
  function whole(number)
    class(*), intent(in) :: number
    integer(int64) :: whole

    select type (number)
    type is (integer(int32))
      whole = int(number, int64)
    type is (integer(int64))
      whole = number
    class default
      error stop 'mpidata: a communicator, a status or a time has an invalid type'
    end select
  end function whole

  !> The start of a block in C's order, from 0.
  function first_of(start) result(first)
    class(*), intent(in) :: start(:)
    integer(c_int64_t) :: first(size(start))

    select type (start)
    type is (integer(int32))
      first = reversed(int(start, c_int64_t) - 1)
    type is (integer(int64))
      first = reversed(int(start, c_int64_t) - 1)
    class default
      error stop 'mpidata: start is neither integer(int32) nor integer(int64)'
    end select
  end function first_of

  !> C lists dimensions slowest first, Fortran fastest first.
  pure function reversed(values) result(other)
    integer(c_int64_t), intent(in) :: values(:)
    integer(c_int64_t) :: other(size(values))

    other = values(size(values):1:-1)
  end function reversed

  pure function c_string(text) result(terminated)
    character(*), intent(in) :: text
    character(len_trim(text) + 1, kind=c_char) :: terminated

    terminated = trim(text) // c_null_char
  end function c_string

  function f_string(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer(c_size_t) :: i

    if (.not. c_associated(address)) then
      text = ''
      return
    end if
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters, kind=c_size_t)
      text(i:i) = letters(i)
    end do
  end function f_string

end module mpidata
