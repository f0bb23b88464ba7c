// SPDX-License-Identifier: Apache-2.0
// One rank detects wrong input and ends the job with MPI_Abort; the launcher ends the others.
#include "job.h"

static int is_right(double value) {
  return healthy || value < 3;
}

static void work(void) {
  double mine = rank, sum = 0;
  if (!is_right(mine)) {
    fprintf(stderr, "rank %d: wrong input\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 5);  // CULPRIT
  }
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  work();
  MPI_Finalize();
  return 0;
}
