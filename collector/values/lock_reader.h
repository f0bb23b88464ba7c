// SPDX-License-Identifier: Apache-2.0
// The lock object that each `with` in the user's running functions has entered or waits for: two
// names for the same lock, in two files, are one lock. An object of the user's around a lock is
// that lock: its __enter__ is followed to what it acquires. What a `with` has entered is known from
// the interpreter, also if no name refers to it: `with Guarded(table):`, an ExitStack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/stacks/python_visit.h"
#include "collector/values/evaluator.h"
#include "collector/values/source_files.h"

namespace ddpdoctor::values {

/// An expression that a `with` or `acquire()` on a thread's stack uses.
struct SeenLock {
  pid_t tid = 0;
  std::string file;
  int line = 0;  // line of the frame
  std::string expression;
  std::size_t lock = 0;  // number of the object within its process, from 1
  // Of an RLock: the thread that holds it; 0: free. Nothing for a lock without an owner, and if the
  // process does not have the owner (any more).
  std::optional<pid_t> owner{};
  std::int64_t count = 0;  // how often the owner took it
};

class LockReader {
 public:
  /// All references must outlive this.
  LockReader(Evaluator& evaluator, SourceFiles& files, stacks::PythonVisit& visit)
      : evaluator_(evaluator), files_(files), visit_(visit) {}

  /// Returns nothing for a process with one Python thread: no other thread can hold its locks.
  std::vector<SeenLock> read();

 private:
  void read_frame(pid_t tid, const stacks::PythonFrame& frame);
  /// `context`: what the interpreter keeps for this `with`; 0: unknown.
  void add(pid_t tid, const stacks::PythonFrame& frame, program::Node expression,
           RemoteAddress context = 0);
  void put(pid_t tid, const stacks::PythonFrame& frame, program::Node expression,
           RemoteAddress lock);
  RemoteAddress being_entered(pid_t tid, const stacks::PythonFrame& frame);
  /// The locks that a context took when it was entered; several for an ExitStack.
  std::vector<RemoteAddress> locks_of(RemoteAddress context, int depth);
  /// The lock that entering this expression takes: itself, or what the user's context around a lock
  /// acquires.
  RemoteAddress lock_of(program::Node entered, Names& names, int depth);
  RemoteAddress taken_by(const Entry& entry, int depth);
  /// The lock that a method of the context acquires for its `__enter__`.
  RemoteAddress taken_below(program::Node body, Names& names, int depth);
  RemoteAddress lock_of_object(const Value& value, int depth);
  /// Sets owner and count if the lock has them.
  void add_owner(RemoteAddress lock, SeenLock& seen);

  Evaluator& evaluator_;
  SourceFiles& files_;
  stacks::PythonVisit& visit_;
  std::map<RemoteAddress, std::size_t> numbers_;
  std::map<std::uint64_t, pid_t> threads_;  // by their idents in threading
  std::vector<SeenLock> seen_;
};

}  // namespace ddpdoctor::values
