// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per MPI call in a world of one rank, where MPI itself does almost nothing: the rest
// is the agent's cost.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  enum { kCalls = 200000 };
  double x = 1, y = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 1000; ++i) {
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double start = seconds();
  for (int i = 0; i < kCalls; ++i) {
    MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  const double middle = seconds();
  for (int i = 0; i < kCalls; ++i) {
    MPI_Irecv(&y, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  const double end = seconds();
  printf("%.1f %.1f\n", 1e9 * (middle - start) / kCalls, 1e9 * (end - middle) / kCalls);
  MPI_Finalize();
  return 0;
}
