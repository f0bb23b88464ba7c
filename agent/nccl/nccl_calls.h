// SPDX-License-Identifier: Apache-2.0
// A call of NCCL from begin to end: recorded, numbered per communicator, assigned to its stream.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_background.h"
#include "agent/nccl/nccl_launches.h"
#include "agent/nccl/nccl_library.h"
#include "wire/events.h"

namespace ddpdoctor::agent::nccl {

/// The call's own data in NCCL's numbers; -1 = none.
struct Call {
  wire::Operation operation = wire::Operation::kUnknown;
  Communicator communicator = nullptr;
  Stream stream = nullptr;
  std::int64_t count = -1;
  int type = -1;
  int reduce_op = -1;
  int root = -1;  // or the peer
};

/// Encloses one call on a stream. Calls that NCCL makes inside its own functions do not count.
class Around {
 public:
  Around(const Library& library, const Call& call);
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;
  ~Around();
  /// Records and returns the result of the real function.
  Result with(Result result);

 private:
  wire::Ring* ring_ = nullptr;
  Communicator communicator_;
  Stream stream_;
  Span span_{};
  Pair pair_{};
  std::uint64_t asked_ = 0;
};

/// Encloses a call in which the host itself waits for other ranks: init, split, destroy.
class AroundHost {
 public:
  /// An init: a new group with this name. `id` 0 = ranks cannot be matched; `magic` is that of
  /// Known. `parent` is queried for the call until NCCL has created the new handle.
  AroundHost(const Library& library, std::uint64_t id, int rank, int size, std::uint64_t magic,
             Communicator parent = nullptr);
  /// A call on an existing communicator.
  AroundHost(const Library& library, wire::Operation operation, Communicator communicator);
  AroundHost(const AroundHost&) = delete;
  AroundHost& operator=(const AroundHost&) = delete;
  ~AroundHost();
  Result with(Result result);
  /// The same for a call that creates a communicator, whose handle is at `made` once NCCL has it.
  Result with(Result result, const Communicator* made);
  /// The same for a split: the new communicator has the name `id`, and a group once it exists.
  Result with_split(Result result, std::uint64_t id, const Communicator* made);

 private:
  void write(wire::Operation operation, std::uint16_t group);
  wire::Ring* ring_ = nullptr;
  Communicator communicator_ = nullptr;
  Span span_{};
  Child child_{};
};

/// True if the calling thread is already inside a function of NCCL.
bool is_nested();

/// A call reported by NCCL's profiler interface: its end stays unknown.
void record_told(wire::Ring& ring, std::uint16_t group, const Call& call, std::uint8_t dtype,
                 bool captured);

}  // namespace ddpdoctor::agent::nccl
