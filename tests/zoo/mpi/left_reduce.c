// SPDX-License-Identifier: Apache-2.0
// One rank skips a reduction. Others have sent their part and continued, which is correct: their
// stacks look like that of the rank that skipped it, and none of them may be accused.
#include "job.h"

static void total(void) {
  double mine = rank, sum = 0;
  if (rank != 3 || healthy) {
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  begin(argc, argv);
  total();
  MPI_Barrier(MPI_COMM_WORLD);  // CULPRIT
  go_on();
  MPI_Finalize();
  return 0;
}
