// SPDX-License-Identifier: Apache-2.0
// Untrusted messages of a network: marks of a node, and lines of a conversation.
#include "collector/fleet/marks.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/fleet/job_state.h"
#include "collector/nodes/conversation.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto marks = ddpdoctor::fleet::read_marks(bytes)) {
    ddpdoctor::fleet::JobState state{ddpdoctor::fleet::Limits{}};
    auto again = *marks;
    again.node += "x";
    state.hear(std::move(*marks), 1, 1e9);
    state.hear(std::move(again), 1, 1e9);
    for (const double now : {2.0, 10.0, 100.0}) {
      (void)state.suspicion(now);
    }
    (void)state.other_job();
  }
  ddpdoctor::nodes::Conversation talk("node", "s1", [](const std::string&) {});
  ddpdoctor::nodes::Lines lines;
  lines.feed(bytes, [&talk](std::string_view line) { talk.hear(line); });
  talk.give_up(1, {});
  (void)talk.take();
  return 0;
}
