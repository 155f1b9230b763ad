! Calls all procedures of the module mpidata, with arrays of every kind, rank and section (put_kind.inc).
#define KIND real(real32)
#define NAME all_real32
#define LABEL 'real32'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
#define KIND real(real64)
#define NAME all_real64
#define LABEL 'real64'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
#define KIND integer(int32)
#define NAME all_int32
#define LABEL 'int32'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
#define KIND integer(int64)
#define NAME all_int64
#define LABEL 'int64'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
#define KIND complex(real32)
#define NAME all_complex32
#define LABEL 'complex32'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
#define KIND complex(real64)
#define NAME all_complex64
#define LABEL 'complex64'
#include "put_kind.inc"
#undef KIND
#undef NAME
#undef LABEL
program put_all
  use mpidata
  use all_real32, only: put_real32 => put_kind
  use all_real64, only: put_real64 => put_kind
  use all_int32, only: put_int32 => put_kind
  use all_int64, only: put_int64 => put_kind
  use all_complex32, only: put_complex32 => put_kind
  use all_complex64, only: put_complex64 => put_kind
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  integer :: group, ierror, few
  integer(int64) :: simulation
  real(real64) :: alpha
  real(real32) :: short
  character(32) :: argument

  call mpidata_init(5, group, ierror)
  if (ierror /= MPIDATA_SUCCESS .or. group /= 6) error stop 'init'
  if (.not. mpidata_next(simulation) .or. simulation /= 0) error stop 'first simulation'
  call mpidata_param('alpha', alpha)
  call mpidata_param('alpha  ', short, ierror)
  if (abs(alpha - 0.1d0) > 0 .or. abs(short - 0.1) > 0 .or. ierror /= MPIDATA_SUCCESS) error stop 'parameter'

  call put_real32()
  call put_real64()
  call put_int32()
  call put_int64()
  call put_complex32()
  call put_complex64()
  call mpidata_step(0.25d0)
  call mpidata_step(0.5d0, ierror)
  if (ierror /= MPIDATA_SUCCESS) error stop 'step'

  call mpidata_put('refused', 1d0, ierror=ierror)
  if (ierror /= MPIDATA_ERR_FIELD) error stop 'the status of an error'
  if (index(mpidata_last_error(), "The field 'refused' is refused.") /= 1) error stop 'the sentence of an error'
  call mpidata_put('start', [1d0, 2d0], start=[1, 1], ierror=ierror)
  if (ierror /= MPIDATA_ERR_ARGUMENT) error stop 'start with too many indices'
  if (index(mpidata_last_error(), 'has 1 dimensions but start has 2 indices') == 0) error stop 'the sentence of start'
  if (mpidata_strerror(MPIDATA_SUCCESS) /= 'success') error stop 'strerror'

  call get_command_argument(1, argument)
  if (argument == 'stop') call mpidata_put('refused', 1d0)
  call mpidata_fail('it diverged, say')
  if (.not. mpidata_next(few, ierror) .or. few /= 1 .or. ierror /= MPIDATA_SUCCESS) error stop 'second simulation'
  if (mpidata_next(simulation, ierror) .or. ierror /= MPIDATA_END) error stop 'no third simulation'
  if (mpidata_next(simulation)) error stop 'the end is not an error'
  call mpidata_finalize()

end program put_all
