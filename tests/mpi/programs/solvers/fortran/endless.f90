! Like endless.c, with one rank and without MPI: each simulation runs until it is cancelled.
program endless
  use mpidata_carried
  use, intrinsic :: iso_fortran_env, only: real32
  implicit none
  integer :: simulation, step, ierror, unit
  real(real32) :: u(6, 4)
  character(64) :: path

  call mpidata_attach()
  do while (mpidata_next(simulation))
    step = 0
    do
      u = real(step, real32)
      call mpidata_put('u', u, ierror=ierror)
      if (ierror == MPIDATA_SUCCESS) call mpidata_step(1d0 * step, ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
      step = step + 1
    end do
    if (ierror /= MPIDATA_CANCELLED) exit
    call mpidata_put('u', u) ! without ierror, a cancel is not an error
    write (path, '(a, i0, a)') 'ended-', simulation, '-0'
    open (newunit=unit, file=path, status='replace')
    write (unit, '(i0)') step
    close (unit)
  end do
  call mpidata_finalize()
end program endless
