#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent adds to calls of libc that it stands in front of: mappings, barriers, semaphores. Prints the least of many rounds, bare and
under the agent in turn; asserts nothing.

  guest_calls.py [--turns N] [--agent FILE]      $DDPDOCTOR names the program beside which the agent lies; needs gcc"""
import argparse
import os
import subprocess
import tempfile
from pathlib import Path

PROGRAM = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
#define LEAST(what, times, call) do { double least = 1e18; \
  for (int round = 0; round < 300; ++round) { double begin = now(); for (int i = 0; i < times; ++i) { call; } double each = (now() - begin) / times; if (each < least) least = each; } \
  printf("%s\t%.1f\n", what, least); } while (0)
#define MAP(flags, descriptor) void* at = mmap(0, 4096, PROT_READ | PROT_WRITE, flags, descriptor, 0); munmap(at, 4096)
int main(int count, char** words) {
  int segment = shm_open("/ddpdoctor_guest_calls", O_RDWR | O_CREAT, 0600), file = open(words[count - 1], O_RDWR | O_CREAT, 0600);
  if (ftruncate(segment, 8192) || ftruncate(file, 8192)) return 1;
  LEAST("mmap, munmap: anonymous", 50, MAP(MAP_PRIVATE | MAP_ANONYMOUS, -1));
  LEAST("mmap, munmap: file, private", 50, MAP(MAP_PRIVATE, file));
  LEAST("mmap, munmap: file, shared", 50, MAP(MAP_SHARED, file));
  LEAST("mmap, munmap: segment", 50, MAP(MAP_SHARED, segment));
  LEAST("segment opened, mapped", 20, int again = shm_open("/ddpdoctor_guest_calls", O_RDWR, 0); MAP(MAP_SHARED, again); close(again));
  LEAST("segment made, sized, mapped, removed", 20, int made = shm_open("/ddpdoctor_guest_made", O_RDWR | O_CREAT, 0600);
        if (ftruncate(made, 4096)) return 2; MAP(MAP_SHARED, made); close(made); shm_unlink("/ddpdoctor_guest_made"));
  shm_unlink("/ddpdoctor_guest_calls");
  pthread_barrier_t barrier; pthread_barrier_init(&barrier, 0, 1);
  LEAST("pthread_barrier_wait of one", 2000, pthread_barrier_wait(&barrier));
  sem_t semaphore; sem_init(&semaphore, 0, 0);
  LEAST("sem_post, sem_wait", 2000, sem_post(&semaphore); sem_wait(&semaphore));
  return 0;
}
'''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--agent", default=str(Path(os.environ.get("DDPDOCTOR", "")).absolute().parent / "libddpdoctor_agent.so"))
    options = parser.parse_args()
    least = {}
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "program.c", Path(folder) / "program"
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
        for _ in range(options.turns):
            for column, more in enumerate(({}, {"LD_PRELOAD": options.agent, "DDPDOCTOR_SPOOL": folder})):
                out = subprocess.run([program, Path(folder) / "file"], env={**os.environ, **more}, capture_output=True, text=True, check=True).stdout
                for line in out.splitlines():
                    what, each = line.split("\t")
                    row = least.setdefault(what, [float("inf"), float("inf")])
                    row[column] = min(row[column], float(each))
    for what, (bare, under) in least.items():
        print(f"{what:30} {bare:9.1f} ns bare {under:9.1f} ns under the agent {under - bare:+8.1f}")


if __name__ == "__main__":
    main()
