// SPDX-License-Identifier: Apache-2.0
// How we come to stand in front of functions of NCCL, MPI, CUDA and c10d without exporting their
// names: the slots through which loaded objects call them are pointed to our doors, and a door
// passes each call on to what stood in its slot. Whoever asks whether a function exists (dlsym, a
// weak reference, a library that needs it) is answered by the dynamic linker alone.
#pragma once

namespace ddpdoctor::agent {

/// From the constructor on, when there is something to record.
void begin_with_slots();

/// Points the slots of objects that were loaded since the last time. Costs a microsecond when there
/// are none. Not for signal handlers: it takes the dynamic linker's locks.
void look_for_slots();

/// Before fork(): notes whether this process has other threads.
void note_who_else_runs();

/// In a forked child, whose other threads are gone. One of them may have held the lock of
/// dl_iterate_phdr, which glibc does not give back: then we never look again.
void forget_who_looks();

// The families' doors. Each answers which door calls from a slot that holds `real` shall take; null
// = leave the slot alone. Two functions never share a door, nor do two versions of one function.
namespace nccl {
void* door_to(int function, void* real);
}
void* mpi_door_to(int id, int which, void* real);
void* cuda_door_to(int function, void* real);
void* c10d_door_to(int id, void* real);

}  // namespace ddpdoctor::agent
