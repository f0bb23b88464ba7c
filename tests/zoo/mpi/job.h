// SPDX-License-Identifier: Apache-2.0
// Shared by the MPI jobs of the zoo: a few healthy steps, then READY on every rank.
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MANY (1 << 18)

static int rank, size, healthy;
double big[MANY], other[MANY];

static inline void steps(int count) {
  for (int i = 0; i < count; ++i) {
    double mine = rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

/// Steps with a pause between them until the job is ended, for the healthy twins.
static inline void go_on(void) {
  for (int i = 0; healthy && i < 600; ++i) {
    usleep(20000);
    steps(1);
  }
}

static inline void begin(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  healthy = argc > 1 && strcmp(argv[1], "--healthy") == 0;
  steps(20);
  printf("READY\n");
  fflush(stdout);
}
