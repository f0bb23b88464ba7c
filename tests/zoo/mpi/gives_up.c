// SPDX-License-Identifier: Apache-2.0
// Rank 2 does not call a reduction; rank 0 waits in it for a few seconds, then its SIGALRM handler
// calls MPI_Abort: the rank that gave up is not the culprit.
#include "job.h"

static void late(int signal_number) {
  (void)signal_number;
  MPI_Abort(MPI_COMM_WORLD, 9);
}

int main(int argc, char** argv) {
  begin(argc, argv);
  if (rank == 0) {
    signal(SIGALRM, late);
    alarm(healthy ? 0 : 3);
  }
  if (rank == 2 && !healthy) {
    sleep(3600);
  }
  steps(1);
  go_on();
  MPI_Finalize();
  return 0;
}
