// SPDX-License-Identifier: Apache-2.0
// A broadcast for which one rank passes another root.
#include "job.h"

static void run(void) {
  const int root = rank == 3 && !healthy ? 1 : 0;
  MPI_Bcast(big, MANY, MPI_DOUBLE, root, MPI_COMM_WORLD);  // CULPRIT
  steps(1);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
