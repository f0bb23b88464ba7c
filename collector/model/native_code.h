// SPDX-License-Identifier: Apache-2.0
// What the native functions and libraries in a stack are: libc, the interpreter, functions that
// take a mutex or the GIL, and the thread pools of libraries. Names come from debug symbols or from
// the dynamic symbol table, so each row is a part of a name.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Of libc, its threads or the dynamic loader, by the library or by the name of a source of glibc.
bool is_libc_code(const Frame& frame);

/// A C function of the interpreter, or Python code.
bool is_interpreter_code(const Frame& frame);

/// A function that returns only when the thread has the GIL.
bool takes_gil(std::string_view function);

/// Takes the GIL in a thread that Python need not know: a library calls back into Python.
bool enters_python(std::string_view function);

/// Code that releases the GIL, or that is called without it: torch's operators, ctypes.CDLL, DDP's
/// and autograd's engine.
bool releases_gil(std::string_view function);

/// What CPython's own modules call without the GIL: time.sleep, select, sockets, os.read.
bool blocks_without_gil(const Frame& frame);

/// A function of libc that returns when something else happens: another thread, a descriptor, a
/// clock.
bool sleeps_in_libc(const Frame& frame);

/// A function that sleeps until a mutex, a rwlock or a spinlock is free: of glibc, macOS, C++,
/// abseil (gRPC), nsync (TensorFlow), jemalloc, Python 3.13 and Rust.
bool takes_mutex(std::string_view function);

/// A function of libc that holds a lock of libc itself only for a moment.
bool has_lock_of_libc(std::string_view function);

/// "<built-in method flush of _io.BufferedWriter object": a call of a file with a buffer, which has
/// a lock, as py-bt of gdb prints it.
bool is_call_of_buffered_file(std::string_view function);

/// Around a mutex or a condition: system calls, and templates of C++ and Rust that wait in them.
bool surrounds_wait(std::string_view function);

/// A function that waits until another thread of the process signals: of a condition variable, a
/// barrier, a future, or a join. Semaphores may be shared by processes.
bool awaits_signal_of_thread(std::string_view function);

/// The name has a timeout: pthread_cond_timedwait, sem_clockwait.
bool has_timeout(std::string_view function);

/// Not of libc, of a mutex or of a condition: the frame has a name that says why the thread waits.
bool says_why(const Frame& frame);

/// The innermost frame that says what the thread waits for or does: none of libc, of a mutex or of
/// a condition. nullptr if a Python frame comes first, or if there is none.
const Frame* telling_frame(const Thread& thread);

/// The start of a thread or of a program, of libc or of C++; libc may have no symbol for it.
bool is_start_of_thread(const Frame& frame);

/// Only the innermost native frames are known: neither the thread's start nor Python code. Which
/// call of the program it is in, a collective or not, is not known.
bool is_cut_off(const Thread& thread);

/// A pool of native threads that fork does not copy.
struct NativePool {
  std::string_view name;  // for people: "OpenMP", "numba's workqueue"
};

/// The pool of which the function or library is a part; nullptr if it is of none.
const NativePool* pool_of(const Frame& frame);

}  // namespace ddpdoctor::model
