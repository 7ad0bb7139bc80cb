# Finds MPI, for the optional library libcapuchin-mpi. Everything else builds and passes its tests without.
#
# CAPUCHIN_HAVE_MPI: headers and library were found, as the target MPI::MPI_C.
set(CAPUCHIN_HAVE_MPI OFF)
if(NOT CAPUCHIN_MPI MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "CAPUCHIN_MPI is ${CAPUCHIN_MPI}, but must be AUTO, ON or OFF")
endif()
if(CAPUCHIN_MPI STREQUAL "OFF")
    return()
endif()
# Global, since a project that includes this one sees it through capuchin_mpi.
find_package(MPI 3.0 QUIET COMPONENTS C GLOBAL)
if(MPI_C_FOUND)
    set(CAPUCHIN_HAVE_MPI ON)
elseif(CAPUCHIN_MPI STREQUAL "ON")
    message(FATAL_ERROR "CAPUCHIN_MPI is ON, but no MPI was found")
endif()
message(STATUS "MPI: ${CAPUCHIN_HAVE_MPI}")
