// SPDX-License-Identifier: Apache-2.0
// One rank skips a reduction of its half of the world; the other member of the half waits in it,
// all others in the world's barrier.
#include "job.h"

int main(int argc, char** argv) {
  MPI_Comm half;
  double mine = 1, sum = 0;
  begin(argc, argv);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank != 1 || healthy) {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // CULPRIT
  go_on();
  MPI_Finalize();
  return 0;
}
