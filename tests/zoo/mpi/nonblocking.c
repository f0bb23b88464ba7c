// SPDX-License-Identifier: Apache-2.0
// Ranks overlap their sum with work; in one step one rank uses the blocking call, which cannot
// match a nonblocking one.
#include "job.h"

static void sum(int step) {
  MPI_Request request;
  if (rank == 1 && step == 5 && !healthy) {
    MPI_Allreduce(big, other, 50000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);  // CULPRIT
    return;
  }
  MPI_Iallreduce(big, other, 50000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  for (int step = 0; healthy ? step < 600 : step < 10; ++step) {
    sum(step);
    usleep(20000);
  }
  MPI_Finalize();
  return 0;
}
