// SPDX-License-Identifier: Apache-2.0
// A call of NCCL from before to after: recorded, numbered per communicator, tied to its stream.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_background.h"
#include "agent/nccl/nccl_launches.h"
#include "agent/nccl/nccl_library.h"
#include "wire/events.h"

namespace ddpdoctor::agent::nccl {

/// What a call says of itself, in NCCL's numbers; -1 = has none.
struct Call {
  wire::Operation operation = wire::Operation::kUnknown;
  Communicator communicator = nullptr;
  Stream stream = nullptr;
  std::int64_t count = -1;
  int type = -1;
  int reduce_op = -1;
  int root = -1;  // or the other side
};

/// Around one call on a stream. Calls that NCCL makes inside its own functions are not counted.
class Around {
 public:
  Around(const Library& library, const Call& call);
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;
  ~Around();
  /// Records how the real function answered, and gives that back.
  Result with(Result result);

 private:
  wire::Ring* ring_ = nullptr;
  Communicator communicator_;
  Stream stream_;
  Span span_{};
  Pair pair_{};
  std::uint64_t asked_ = 0;
};

/// Around a call in which the host itself waits for other ranks: init, split, destroy.
class AroundHost {
 public:
  /// An init: a new group of this name. `id` 0 = ranks cannot find each other; `magic` is that of
  /// Known. `parent` answers for the call where NCCL has not made the new handle yet.
  AroundHost(const Library& library, std::uint64_t id, int rank, int size, std::uint64_t magic,
             Communicator parent = nullptr);
  /// A call of a communicator that exists.
  AroundHost(const Library& library, wire::Operation operation, Communicator communicator);
  AroundHost(const AroundHost&) = delete;
  AroundHost& operator=(const AroundHost&) = delete;
  ~AroundHost();
  Result with(Result result);
  /// The same for a call that makes a communicator, whose handle is at `made` when NCCL has it.
  Result with(Result result, const Communicator* made);
  /// The same for a split: the new communicator has the name `id`, and a group when it is there.
  Result with_split(Result result, std::uint64_t id, const Communicator* made);

 private:
  void write(wire::Operation operation, std::uint16_t group);
  wire::Ring* ring_ = nullptr;
  Communicator communicator_ = nullptr;
  Span span_{};
  Child child_{};
};

/// Whether the calling thread is inside a function of NCCL already.
bool is_nested();

/// A call that NCCL's profiler interface tells of: its end stays unknown.
void record_told(wire::Ring& ring, std::uint16_t group, const Call& call, std::uint8_t dtype,
                 bool captured);

}  // namespace ddpdoctor::agent::nccl
