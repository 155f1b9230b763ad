# Ask the MPI library for its version and its file: MPIDATA_BUILT_WITH (as MPI_Get_library_version says) and
# MPIDATA_MPI_LIBRARY_FILE, of which MPIDATA_MPI_LIBRARY_DIR and MPIDATA_MPI_LIBRARY (as after -l: Debian calls that of MPICH
# mpich) are parts. If programs cannot run, as in cross-compiling, -D sets the two.
if(MPIDATA_BUILT_WITH AND MPIDATA_MPI_LIBRARY_FILE)
  set(probe_output "version=${MPIDATA_BUILT_WITH}\nlibrary=${MPIDATA_MPI_LIBRARY_FILE}\n")
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(FATAL_ERROR "MPI cannot be asked for its version: programs for ${CMAKE_SYSTEM_NAME} do not run here. Give "
                      "-DMPIDATA_BUILT_WITH=<what MPI_Get_library_version says there> and "
                      "-DMPIDATA_MPI_LIBRARY_FILE=<path of libmpi.so there>.")
else()
  # Asked again at every configure, because another MPI may have been installed at the same place.
  unset(mpidata_probe_runs CACHE)
  unset(mpidata_probe_compiles CACHE)
  try_run(mpidata_probe_runs mpidata_probe_compiles ${CMAKE_CURRENT_BINARY_DIR}/probe_mpi
          ${CMAKE_CURRENT_LIST_DIR}/probe_mpi.c
          LINK_LIBRARIES MPI::MPI_C ${CMAKE_DL_LIBS}
          COMPILE_OUTPUT_VARIABLE probe_log
          RUN_OUTPUT_VARIABLE probe_output)
  if(NOT mpidata_probe_compiles)
    message(FATAL_ERROR "A small MPI program does not compile with '${MPI_C_COMPILER}'. "
                        "Give a working mpicc with -DMPI_C_COMPILER=<path>.\n${probe_log}")
  endif()
  if(NOT mpidata_probe_runs EQUAL 0)
    message(FATAL_ERROR "A small MPI program compiled with '${MPI_C_COMPILER}' does not run (${mpidata_probe_runs}). "
                        "Check that its libmpi can be found.\n${probe_output}")
  endif()
endif()
string(REGEX MATCH "version=([^\n]*)" _ "${probe_output}")
string(REGEX REPLACE "[\"\\\\]" "" MPIDATA_BUILT_WITH "${CMAKE_MATCH_1}")
# MPICH 4 has a tab here, which JSON does not allow in a text.
string(REGEX REPLACE "[ \t\r]+" " " MPIDATA_BUILT_WITH "${MPIDATA_BUILT_WITH}")
string(STRIP "${MPIDATA_BUILT_WITH}" MPIDATA_BUILT_WITH)
string(REGEX MATCH "library=([^\n]*)" _ "${probe_output}")
set(MPIDATA_MPI_LIBRARY_FILE "${CMAKE_MATCH_1}")
get_filename_component(MPIDATA_MPI_LIBRARY_DIR "${MPIDATA_MPI_LIBRARY_FILE}" DIRECTORY)
get_filename_component(MPIDATA_MPI_LIBRARY "${MPIDATA_MPI_LIBRARY_FILE}" NAME)
string(REGEX REPLACE "^lib(.*)\\.(so|a)[.0-9]*$" "\\1" MPIDATA_MPI_LIBRARY "${MPIDATA_MPI_LIBRARY}")
message(STATUS "MPI library: ${MPIDATA_BUILT_WITH} (${MPIDATA_MPI_LIBRARY_DIR})")
