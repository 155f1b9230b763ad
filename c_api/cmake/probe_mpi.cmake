# Ask the MPI library who it is and where it lies: MPIDATA_BUILT_WITH, MPIDATA_MPI_LIBRARY_DIR,
# MPIDATA_MPI_LIBRARY (as after -l: Debian calls that of MPICH mpich).
# Asked anew at every configure, as another MPI may have been installed at the same place.
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
string(REGEX MATCH "version=([^\n]*)" _ "${probe_output}")
string(REGEX REPLACE "[\"\\\\]" "" MPIDATA_BUILT_WITH "${CMAKE_MATCH_1}")
# MPICH 4 has a tab here, which JSON does not allow in a text.
string(REGEX REPLACE "[ \t\r]+" " " MPIDATA_BUILT_WITH "${MPIDATA_BUILT_WITH}")
string(STRIP "${MPIDATA_BUILT_WITH}" MPIDATA_BUILT_WITH)
string(REGEX MATCH "library=([^\n]*)" _ "${probe_output}")
get_filename_component(MPIDATA_MPI_LIBRARY_DIR "${CMAKE_MATCH_1}" DIRECTORY)
get_filename_component(MPIDATA_MPI_LIBRARY "${CMAKE_MATCH_1}" NAME)
string(REGEX REPLACE "^lib(.*)\\.(so|a)[.0-9]*$" "\\1" MPIDATA_MPI_LIBRARY "${MPIDATA_MPI_LIBRARY}")
message(STATUS "MPI library: ${MPIDATA_BUILT_WITH} (${MPIDATA_MPI_LIBRARY_DIR})")
