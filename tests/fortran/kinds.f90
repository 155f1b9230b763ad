! Calls the module mpidata with the kinds that the compiler's flags give `real`, `integer` and 0.5d0, and with other
! kinds.
program kinds
  use mpidata
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64, real128
  implicit none
  integer :: group, simulation, ierror
  integer(int32) :: short
  integer(int64) :: long
  integer(int8), target :: marker(3)
  real :: alpha, time, u(4)
  real(real128) :: wide
  real(real64) :: values(3, 2)
  character(20) :: text

  call mpidata_init(5_int64, group, ierror)
  if (ierror /= MPIDATA_SUCCESS .or. group /= 6) error stop 'init'
  call mpidata_init(5_int32, long, short)
  if (short /= MPIDATA_SUCCESS .or. long /= 6) error stop 'init of the other kinds'
  do while (mpidata_next(simulation, ierror))
    call mpidata_param('alpha', alpha)
    call mpidata_param('alpha', wide, long)
    if (abs(alpha - 0.1) > 0 .or. abs(wide - 0.1_real64) > 0 .or. long /= MPIDATA_SUCCESS) error stop 'alpha'
    call mpidata_param('level', short)
    call mpidata_param('level', long)
    if (short /= 4 .or. long /= 4) error stop 'level'
    call mpidata_param('alpha', long, ierror)
    if (ierror /= MPIDATA_ERR_PARAMETER) error stop 'a number that is not whole'
    if (index(mpidata_last_error(), "Parameter 'alpha' is not a whole number") /= 1) error stop 'its sentence'
    if (mpidata_strerror(0_int32) // mpidata_strerror(0_int64) /= 'successsuccess') error stop 'strerror'
    call mpidata_param_text('mesh', text)
    if (text /= 'text of mesh') error stop 'text'
    call mpidata_param_text('mesh', text(:12), ierror)
    if (ierror /= MPIDATA_SUCCESS .or. text(:12) /= 'text of mesh') error stop 'a text that just fits'
    call mpidata_param_text('mesh', text(:11), long)
    if (long == MPIDATA_SUCCESS) error stop 'a text that does not fit'
    u = alpha
    time = 0.25
    marker = [1_int8, -1_int8, 3_int8]
    values = 1
    call mpidata_put('u', u)
    call mpidata_put('u32', values, [2_int32, 3_int32], long)
    call mpidata_put('u64', values, start=[2_int64, 3_int64], ierror=short)
    call mpidata_iput('marker', marker, start=[4_int64], ierror=long)
    call mpidata_device_stream(c_null_ptr)
    call mpidata_device_stream(c_loc(marker), ierror)
    if (ierror /= MPIDATA_ERR_FIELD) error stop 'the stream that is passed on'
    call mpidata_wait_for(marker, long)
    call mpidata_wait(short)
    call mpidata_step(time, ierror)
    call mpidata_step(0.5d0 * 1)
    call mpidata_step(0.75_real32, short)
    call mpidata_step(1_int64, long)
    if (short /= 0 .or. long /= 0 .or. ierror /= 0) error stop 'step'
    call mpidata_fail('over', long)
  end do
  if (ierror /= MPIDATA_END) error stop 'the end'
  call mpidata_finalize(ierror)
end program kinds
