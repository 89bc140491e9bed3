// What a program does before anything else.
#pragma once

namespace headwise {

/// Prepares the process; the first line of a main():
///
///     int main(int argc, char** argv) {
///       headwise::init(argc, argv);
///
/// - Opens what is closed of the file descriptors 0 to 2, so that no message ends up in a file that
///   was opened later. Standard input and output that were closed still fail.
/// - Two libraries read the environment only while they are loaded. Unless the user set them,
///   GOMP_SPINCOUNT becomes 2000 (waiting threads of GCC's OpenMP spin so long that beside other
///   busy processes a step takes ten times as long; not set either with OMP_WAIT_POLICY), and
///   OPENBLAS_NUM_THREADS becomes 1 (the threads are headwise's). Where one had to be set, the
///   program starts again, once, with the same arguments: nothing may have happened before.
/// - Chooses the BLAS's kernels by what the processor can do, see better_blas_kernel(), unless the
///   user set OPENBLAS_CORETYPE. They change the last bits of results.
///
/// Without this call everything works: perhaps slower, and with the kernels that the BLAS chose.
void init(int argc, char** argv);

}  // namespace headwise
