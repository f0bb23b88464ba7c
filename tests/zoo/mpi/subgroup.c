// SPDX-License-Identifier: Apache-2.0
// In one half of a split world, one rank calls a barrier and the other a reduction.
#include "job.h"

static void run(void) {
  MPI_Comm half;
  double x = rank, y;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < 5; ++i) {
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_MAX, half);
  }
  if (rank == 4 && !healthy) {
    MPI_Barrier(half);  // CULPRIT
  } else {
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_MAX, half);
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
