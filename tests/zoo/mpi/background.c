// SPDX-License-Identifier: Apache-2.0
// A background thread reduces for the training loop in every step, as in Horovod; in one step one
// rank passes something else.
#include "job.h"

static sem_t wanted, done;

static void* reduce(void* unused) {
  for (int step = 0; healthy || step < 10; ++step) {
    sem_wait(&wanted);
    if (rank == 1 && step == 6 && !healthy) {
      MPI_Barrier(MPI_COMM_WORLD);  // CULPRIT
    } else {
      MPI_Allreduce(big, other, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    sem_post(&done);
  }
  return unused;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t thread;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  healthy = argc > 1;
  sem_init(&wanted, 0, 0);
  sem_init(&done, 0, 0);
  pthread_create(&thread, NULL, reduce, NULL);
  printf("READY\n");
  fflush(stdout);
  for (int step = 0; step < 600; ++step) {
    usleep(20000);
    sem_post(&wanted);
    sem_wait(&done);
  }
  MPI_Finalize();
  return 0;
}
