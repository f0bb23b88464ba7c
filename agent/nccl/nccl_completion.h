// SPDX-License-Identifier: Apache-2.0
// When does the GPU begin and finish calls? A pair of events of the driver around a launch on its
// stream, one pair however many calls the launch has, and a thread of ours that asks them. Events
// without times, no callback, no context made, nothing while a stream is being captured into a
// graph.
#pragma once

#include <cstdint>

#include "agent/nccl/nccl_library.h"
#include "agent/nccl/nccl_spans.h"

namespace ddpdoctor::agent::nccl {

enum class Begun {
  kUntracked,  // there is no driver, no context, or no reader
  kFull,       // more launches are open than we follow
  kTracked,
  kCaptured
};

/// An event pair that was begun.
struct Pair {
  Begun begun = Begun::kUntracked;
  std::uint32_t slot = 0;
};

/// Before the real call.
Pair begin_pair(Stream stream);
/// These calls are in the launch that the pair is around; counted as untracked when they do not
/// fit.
void add_to_pair(wire::Ring& ring, const Pair& pair, const Span& span);
/// After the launch: the calls' completion will be told, and they are noted as tracked. What cannot
/// be followed after all is counted. `later`: the launch is over for some time, and another context
/// or a capture may have begun since.
void end_pair(wire::Ring& ring, const Pair& pair, Stream stream, bool later = false);
/// Nothing was launched.
void drop_pair(const Pair& pair);
/// Something was, or will be, and is not followed: its calls are counted.
void abandon_pair(wire::Ring& ring, const Pair& pair);

/// The process ends, or is a forked child: nobody asks any more.
void stop_watching();

}  // namespace ddpdoctor::agent::nccl
