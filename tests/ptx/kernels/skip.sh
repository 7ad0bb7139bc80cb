#!/bin/bash
# skip.sh: the test that says what is left out where nothing compiles kernels to PTX.
echo "skipped: there is neither nvcc nor a clang that makes PTX, so kernels/ is not executed as PTX:"
echo "left out are kernels_on_ptx_test, ptx_slice_kernels_test, kernels_needs_test, kernels_blas_test,"
echo "all ..._on_fake tests, gpu_first, gpu_check_on_sim and gpu_bundle"
exit 77
