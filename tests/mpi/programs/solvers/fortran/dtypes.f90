! Puts fields of all dtypes for which Fortran has a kind, and converted ones, as dtype_values.py defines them.
program dtypes
  use mpidata_carried
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  implicit none
  integer, parameter :: n = 6, steps = 3
  integer :: simulation, step, i
  integer(int8), target, asynchronous :: bytes(n), marks(n)
  integer(int16) :: shorts(n)
  integer(int32) :: ints(n)
  integer(int64) :: longs(n)
  real(real32) :: singles(n)
  real(real64) :: doubles(n)
  complex(real32) :: single_pairs(n)
  complex(real64) :: double_pairs(n)
  logical(int8) :: truths8(n)
  logical(int16) :: truths16(n, 2)
  logical(int64) :: truths64(n)
  logical, target, asynchronous :: truths(n)

  call mpidata_attach()
  do while (mpidata_next(simulation))
    do step = 0, steps - 1
      longs = [(8 * step + i, i = 0, n - 1)]
      marks = int(longs, int8)
      marks(n) = -1_int8                         ! 255 of uint8
      truths = mod(longs, 3_int64) == 0
      doubles = real(longs + 1, real64) / 3
      double_pairs = cmplx(doubles, real(longs, real64), real64)
      double_pairs(n) = (1d300, 1d0)
      single_pairs = cmplx(double_pairs, kind=real32)
      single_pairs(n) = (3e38, 1e0)
      doubles(n - 1) = ieee_value(doubles(1), ieee_quiet_nan)
      doubles(n) = 1d300
      singles = real(doubles, real32)
      singles(n) = 3e38
      longs = -longs
      longs(n) = huge(longs)
      ints = int(longs, int32)
      ints(n) = huge(ints)
      shorts = int(longs, int16)
      shorts(n) = huge(shorts)
      bytes = int(longs, int8)
      bytes(n) = huge(bytes)
      truths8 = truths
      truths16(:, 2) = truths
      truths64 = truths
      call mpidata_iput('int8', bytes)
      call mpidata_iput('uint8', marks)
      call mpidata_put('int16', shorts)
      call mpidata_put('int32', ints)
      call mpidata_put('int64', longs)
      call mpidata_put('float32', singles)
      call mpidata_put('float64', doubles)
      call mpidata_put('complex64', single_pairs)
      call mpidata_put('complex128', double_pairs)
      call mpidata_put('float32_of_float64', doubles)
      call mpidata_put('float16_of_float64', doubles)
      call mpidata_put('bfloat16_of_float64', doubles)
      call mpidata_put('float16_of_float32', singles)
      call mpidata_put('bfloat16_of_float32', singles)
      call mpidata_put('complex64_of_complex128', double_pairs)
      call mpidata_iput('bool', truths)
      call mpidata_put('bool_1_bool', truths8(:3), start=[1])
      call mpidata_put('bool_1_bool', truths8(4:), start=[4])
      call mpidata_put('bool_2_bool', truths16(:, 2))
      call mpidata_put('bool_8_bool', truths64)
      call mpidata_step(real(step, real64))
      call mpidata_wait()
    end do
  end do
  call mpidata_finalize()
end program dtypes
