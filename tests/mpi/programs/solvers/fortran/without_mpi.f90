program solver
  use mpidata_carried
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none (type, external)
  integer :: simulation, step, ierror
  real(real64) :: alpha, u(6, 4)

  call mpidata_attach()
  do while (mpidata_next(simulation))
    call mpidata_param('alpha', alpha)
    do step = 1, 3
      u = alpha * step
      call mpidata_put('u', u)
      call mpidata_step(0.5_real64 * step, ierror)
      if (ierror /= MPIDATA_SUCCESS) exit
    end do
  end do
  call mpidata_finalize()
end program
