// SPDX-License-Identifier: Apache-2.0
// One rank stays in a loop of its own while the others wait for it in a barrier.
#include "job.h"

static void run(void) {
  if (rank == 2 && !healthy) {
    sleep(600);  // CULPRIT
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
