// SPDX-License-Identifier: Apache-2.0
// A barrier that only rank 0 calls.
#include "job.h"

static void run(void) {
  if (rank == 0 || healthy) {
    MPI_Barrier(MPI_COMM_WORLD);  // CULPRIT
  }
  steps(1);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
