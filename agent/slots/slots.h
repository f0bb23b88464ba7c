// SPDX-License-Identifier: Apache-2.0
// How functions of NCCL, MPI, CUDA and c10d are interposed without exporting their names: the slots
// through which loaded objects call them are pointed to our doors, and a door passes each call on
// to the previous content of its slot. A program that checks whether a function exists (dlsym, a
// weak reference, a library that needs it) gets the dynamic linker's own answer.
#pragma once

namespace ddpdoctor::agent {

/// Call from the constructor, if there is something to record.
void begin_with_slots();

/// Points the slots of objects that were loaded since the last call to the doors. Takes a
/// microsecond if there are none. Not for signal handlers: it takes the dynamic linker's locks.
void look_for_slots();

/// Call before fork(): records whether this process has other threads.
void note_who_else_runs();

/// Call in a forked child, whose other threads do not exist. One of them may have held the lock of
/// dl_iterate_phdr, which glibc does not release: then no further pass is made.
void forget_who_looks();

// The doors of the families. Each returns the door for calls from a slot that holds `real`; null =
// leave the slot unchanged. Two functions, or two versions of one function, never share a door.
namespace nccl {
void* door_to(int function, void* real);
}
void* mpi_door_to(int id, int which, void* real);
void* cuda_door_to(int function, void* real);
void* c10d_door_to(int id, void* real);

}  // namespace ddpdoctor::agent
