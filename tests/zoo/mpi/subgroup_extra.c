// SPDX-License-Identifier: Apache-2.0
// Two halves made by one split; one rank makes one call more in its half than all others in theirs,
// then all call a barrier of the world.
#include "job.h"

static MPI_Comm half;

static void exchange(void) {
  double mine = rank, sum = 0;
  for (int i = 0; i < 5; ++i) {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  }
  if (rank == 3 && !healthy) {
    MPI_Barrier(half);  // CULPRIT
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
  exchange();
  steps(1);
  go_on();
  MPI_Finalize();
  return 0;
}
