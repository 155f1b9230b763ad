program solver
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32
  use, intrinsic :: ieee_arithmetic
  use mpidata_carried
  implicit none
  integer(int64) :: simulation
  real(real32) :: value
  character(5), parameter :: names(4) = ['great', 'least', 'small', 'tenth']
  integer :: i
  logical :: halts(5), flags(5)
  type(ieee_round_type) :: rounding
  call mpidata_attach()
  call ieee_set_rounding_mode(ieee_up)
  if (.not. mpidata_next(simulation)) error stop 'no simulation'
  do i = 1, 4
    call mpidata_param(names(i), value)
    print '(a, 1x, z8.8)', names(i), transfer(value, 0_int32)
  end do
  call ieee_get_halting_mode(ieee_all, halts)
  call ieee_get_flag(ieee_all, flags)
  call ieee_get_rounding_mode(rounding)
  print '(3l2)', all(halts), any(flags), rounding == ieee_up
  call mpidata_finalize()
end program solver
