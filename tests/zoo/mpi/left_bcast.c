// SPDX-License-Identifier: Apache-2.0
// One rank returns before a broadcast that it should forward: the next rank in MPI's tree waits in
// it, and perhaps the root; the others have their data and are in the next reduction.
#include "job.h"

static void share(int step) {
  if (step == 3 && rank == 2 && !healthy) {
    return;
  }
  MPI_Bcast(big, MANY / 4, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int step = 0; step < 8; ++step) {
    share(step);
    double mine = rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CULPRIT
  }
  go_on();
  MPI_Finalize();
  return 0;
}
