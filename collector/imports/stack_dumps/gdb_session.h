// SPDX-License-Identifier: Apache-2.0
// Lines of a gdb session that are not frames: the processes it attaches to, the threads it lists
// and selects, and what it prints of a mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// A thread as gdb names it.
struct GdbThread {
  std::int64_t number = 0;  // gdb's own number; 1 = the first thread of the process
  pid_t tid = 0;
  std::string_view name;
  std::optional<std::uint64_t> pointer;  // its pthread_t
  std::string_view frame = {};           // of a table: "0x00007f26 in poll () from …"
  std::optional<pid_t> process = {};     // of FreeBSD, where the threads' ids are not the pid's
  bool selected = false;                 // "*" in a table: `bt` shows this thread
};

/// `Thread 2 (Thread 0x7f26f71336c0 (LWP 18823) "python"):`, `Thread 1 (LWP 7):`; the colon is
/// optional, because copies may lack it.
std::optional<GdbThread> gdb_heading(std::string_view line);

/// "[Switching to thread 5 (Thread 0x7f78 (LWP 71))]", after the command `thread 5`.
std::optional<GdbThread> switched_to(std::string_view line);

/// `* 1    Thread 0x7f2d (LWP 913) "python" __lll_lock_wait () at …`: a row of `info threads`.
std::optional<GdbThread> thread_row(std::string_view line);

/// "  Id   Target Id         Frame" and a first row.
bool begins_thread_table(const Lines& lines);

/// "Attaching to process 7", "[Inferior 1 (process 7) detached]".
std::optional<pid_t> process_named(std::string_view line);

/// "Attaching to process 7", "Attaching to program: /usr/bin/python3, process 7", "$ gdb -p 7":
/// the first line about a process.
std::optional<pid_t> attached_to(std::string_view line);

/// "$1 = {__data = {__lock = 2, __count = 0, __owner = 71, …": the thread that holds the mutex.
std::optional<pid_t> mutex_owner(std::string_view line);

/// Messages of gdb and python-gdb.py between threads: a thread without Python has no py-bt.
bool is_gdb_remark(std::string_view line);

/// "(gdb) quit", "(gdb) detach": the next line is not gdb's.
bool ends_session(std::string_view line);

}  // namespace ddpdoctor::imports
