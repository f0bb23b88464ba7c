// SPDX-License-Identifier: Apache-2.0
// A nonblocking ring in which one rank receives from the wrong neighbour.
#include "job.h"

static void run(void) {
  MPI_Request requests[2];
  int value = rank, got = -1;
  const int last = (rank + size - 1) % size;
  MPI_Isend(&value, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&got, 1, MPI_INT, rank == 2 && !healthy ? 3 : last, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);  // CULPRIT
  MPI_Barrier(MPI_COMM_WORLD);
  go_on();
}

int main(int argc, char** argv) {
  begin(argc, argv);
  run();
  MPI_Finalize();
  return 0;
}
