// SPDX-License-Identifier: Apache-2.0
// Rank 2 does not come to a reduction; rank 0 waits there for a few seconds, then its handler of SIGALRM calls MPI_Abort: the rank that
// gave up is not the one to blame.
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
