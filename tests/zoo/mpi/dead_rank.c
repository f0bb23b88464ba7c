// SPDX-License-Identifier: Apache-2.0
// One rank is killed in the middle of the work. (MPICH's launcher then kills the others with the
// same signal; the rank that died first is the one that was already dead when the launcher sent
// them.)
#include "job.h"

static void run(void) {
  if (rank == 1 && !healthy) {
    raise(SIGKILL);  // CULPRIT
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
