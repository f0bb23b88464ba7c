// SPDX-License-Identifier: Apache-2.0
// At the same point one rank broadcasts and the others reduce.
#include "job.h"

static void run(void) {
  if (rank == 2 && !healthy) {
    MPI_Bcast(big, MANY, MPI_DOUBLE, 0, MPI_COMM_WORLD);  // CULPRIT
  } else {
    MPI_Allreduce(big, other, MANY, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
