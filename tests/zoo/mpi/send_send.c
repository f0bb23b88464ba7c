// SPDX-License-Identifier: Apache-2.0
// Two ranks send each other more than a buffer holds before either receives.
#include "job.h"

static void run(void) {
  const int peer = 1 - rank;
  if (healthy) {
    MPI_Sendrecv(big, MANY, MPI_DOUBLE, peer, 5, other, MANY, MPI_DOUBLE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(big, MANY, MPI_DOUBLE, peer, 5, MPI_COMM_WORLD);  // CULPRIT
    MPI_Recv(other, MANY, MPI_DOUBLE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
