# Finds the parts of CUDA that are installed. Everything builds and passes its tests without CUDA.
#
# CAPUCHIN_HAVE_CUDA: the toolkit's headers and static runtime library were found. The cuda device
#     needs no more.
# CAPUCHIN_HAVE_NVCC: .cu files can be compiled.
# CAPUCHIN_CUDART: the libraries that the plug-in with the cuda device links. The runtime is static, so
#     that it loads on machines without a toolkit, and given by its path, so that projects which include
#     this one do not have to find the toolkit.
# CAPUCHIN_HAVE_NVTX: marks for profilers can be compiled, with the headers in CAPUCHIN_NVTX_INCLUDE.
set(CAPUCHIN_HAVE_CUDA OFF)
set(CAPUCHIN_HAVE_NVTX OFF)
set(CAPUCHIN_CUDART)
set(CAPUCHIN_HAVE_NVCC OFF)
if(NOT CAPUCHIN_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "CAPUCHIN_CUDA is ${CAPUCHIN_CUDA}, but must be AUTO, ON or OFF")
endif()
if(CAPUCHIN_CUDA STREQUAL "OFF")
    return()
endif()

# cudaGetDriverEntryPointByVersion exists since 12.5.
find_package(CUDAToolkit 12.5 QUIET)
if(TARGET CUDA::cudart_static)
    set(CAPUCHIN_HAVE_CUDA ON)
    set(CAPUCHIN_CUDART ${CUDA_cudart_static_LIBRARY} dl rt)
elseif(CAPUCHIN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CAPUCHIN_CUDA is ON, but no CUDA toolkit of version 12.5 or later was found")
endif()

find_path(CAPUCHIN_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
mark_as_advanced(CAPUCHIN_NVTX_INCLUDE)
if(CAPUCHIN_HAVE_CUDA AND CAPUCHIN_NVTX_INCLUDE)
    set(CAPUCHIN_HAVE_NVTX ON)
endif()

# Only kernels, examples and tests have .cu files, not the library itself.
if(CAPUCHIN_HAVE_CUDA AND CAPUCHIN_DEVELOPMENT)
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 80 90) # A100; H100 and H200
        endif()
        set(CMAKE_CUDA_STANDARD 17)
        enable_language(CUDA)
        set(CAPUCHIN_HAVE_NVCC ON)
    elseif(CAPUCHIN_CUDA STREQUAL "ON")
        message(FATAL_ERROR "CAPUCHIN_CUDA is ON, but nvcc was not found")
    endif()
endif()
message(STATUS "CUDA: toolkit ${CAPUCHIN_HAVE_CUDA}, nvcc ${CAPUCHIN_HAVE_NVCC}, NVTX ${CAPUCHIN_HAVE_NVTX}")
