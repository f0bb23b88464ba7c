// SPDX-License-Identifier: Apache-2.0
// A receive with a tag that no rank sends; the sender has continued to a barrier.
#include "job.h"

static void run(void) {
  int value = 7;
  if (rank == 0) {
    MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  } else if (rank == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, healthy ? 5 : 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  // CULPRIT
  }
  MPI_Barrier(MPI_COMM_WORLD);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
