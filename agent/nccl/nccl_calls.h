// SPDX-License-Identifier: Apache-2.0
// A call of NCCL from before to after: recorded, numbered per communicator, tied to its stream.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_communicators.h"
#include "agent/nccl/nccl_completion.h"
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
  wire::Slot* slot_ = nullptr;
  std::uint64_t index_ = 0;
  Stream stream_ = nullptr;
  Span span_{};
  Pair pair_{};
  bool grouped_ = false;
};

/// Around a call in which the host itself waits for other ranks: init, split, destroy.
class AroundHost {
 public:
  /// An init: a new group of this name. `id` 0 = ranks cannot find each other; `magic` is that of
  /// Known.
  AroundHost(const Library& library, std::uint64_t id, int rank, int size, std::uint64_t magic = 0);
  /// A call of a communicator that exists.
  AroundHost(const Library& library, wire::Operation operation, Communicator communicator);
  AroundHost(const AroundHost&) = delete;
  AroundHost& operator=(const AroundHost&) = delete;
  ~AroundHost();
  Result with(Result result);
  /// The same for a call that makes a communicator, which stands at `made` when NCCL has it.
  Result with(Result result, const Communicator* made);
  [[nodiscard]] bool counts() const {
    return ring_ != nullptr;
  }

 private:
  void write(wire::Operation operation);
  wire::Ring* ring_ = nullptr;
  Communicator communicator_ = nullptr;
  std::uint64_t id_ = 0;
  std::uint64_t magic_ = 0;
  int rank_ = -1;
  int size_ = -1;
  Span span_{};
};

/// Whether the calling thread is inside a function of NCCL already.
bool is_nested();

/// A call that NCCL's profiler interface tells of: its end stays unknown.
void record_told(wire::Ring& ring, std::uint16_t group, const Call& call, std::uint8_t dtype,
                 bool captured);

/// Calls that were captured into a graph since somebody asked last.
std::uint32_t take_captured();

void group_started();
/// Around the outermost ncclGroupEnd; in between the real one.
void group_ends();
void group_ended(Result result);
/// A nonblocking communicator answers that it is ready, or failed.
void async_answer(Communicator communicator, Result state);

}  // namespace ddpdoctor::agent::nccl
