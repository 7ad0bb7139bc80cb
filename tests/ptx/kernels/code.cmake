# The PTX of the kernels in kernels/, for tests that execute it. It is made by nvcc where that is found, and otherwise by
# clang, which needs no CUDA for it.
#
# kernels_code: the folder with OPERATION.ptx, and the name of the target that makes them. Empty if there is no compiler.
set(kernels_code)
if(CAPUCHIN_SANITIZE MATCHES "thread") # nothing executes PTX there
    return()
endif()
set(code_script ${PROJECT_SOURCE_DIR}/tests/ptx/kernels/code.sh)
if(CAPUCHIN_HAVE_NVCC)
    set(code_compiler nvcc ${CMAKE_CUDA_COMPILER})
else()
    find_program(CAPUCHIN_CLANG NAMES clang clang-14)
    mark_as_advanced(CAPUCHIN_CLANG)
    set(code_compiler clang ${CAPUCHIN_CLANG})
    set(has_clang NO)
    if(CAPUCHIN_CLANG) # but perhaps one without PTX
        file(WRITE ${PROJECT_BINARY_DIR}/CMakeFiles/kernel.cu "__attribute__((global)) void kernel() {}\n")
        execute_process(COMMAND ${CAPUCHIN_CLANG} -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib
                                -S -o /dev/null ${PROJECT_BINARY_DIR}/CMakeFiles/kernel.cu
                        RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
        if(status EQUAL 0)
            set(has_clang YES)
        endif()
    endif()
    if(NOT has_clang)
        message(STATUS "Tests that execute kernels/ as PTX are left out: neither nvcc nor a clang that makes PTX is there")
        add_test(NAME kernels_on_ptx_needs_nvcc_or_clang COMMAND ${PROJECT_SOURCE_DIR}/tests/ptx/kernels/skip.sh)
        set_tests_properties(kernels_on_ptx_needs_nvcc_or_clang PROPERTIES LABELS ptx SKIP_RETURN_CODE 77)
        return()
    endif()
endif()

set(kernels_code ${PROJECT_BINARY_DIR}/tests/ptx/kernels/code)
file(MAKE_DIRECTORY ${kernels_code})
set(code_files)
foreach(source IN LISTS kernels_cuda)
    if(NOT source MATCHES "^blas") # no kernels
        string(REPLACE ".cu" ".ptx" code ${kernels_code}/${source})
        add_custom_command(OUTPUT ${code}
            COMMAND ${code_script} ${code_compiler} ${PROJECT_SOURCE_DIR}/kernels/${source} ${code}
            DEPENDS ${PROJECT_SOURCE_DIR}/kernels/${source} ${code_script}
                    ${PROJECT_SOURCE_DIR}/tests/ptx/kernels/device.h
            DEPFILE ${code}.d VERBATIM)
        list(APPEND code_files ${code})
    endif()
endforeach()
add_custom_target(kernels_code DEPENDS ${code_files})
