// SPDX-License-Identifier: Apache-2.0
// One rank returns early and waits in MPI_Finalize; the others are one barrier behind it.
#include "job.h"

static void run(void) {
  if (rank == 2 && !healthy) {
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();  // CULPRIT
  return 0;
}
