// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/compiled_sites.h"

#include <charconv>
#include <string_view>

#include "base/text.h"
#include "collector/model/building/recorded_facts.h"

namespace ddpdoctor::model {
namespace {

constexpr std::string_view kMark = "+0x";

}  // namespace

CallSite CompiledSites::look_up(const sources::RecordedFrame& frame) {
  std::uint64_t address = 0;
  const std::string& text = frame.function;
  const auto [end, error] =
      std::from_chars(text.data() + kMark.size(), text.data() + text.size(), address, 16);
  if (error != std::errc() || address == 0) {
    return {.file = frame.file, .line = 0, .function = {}};
  }
  // the return address is after the call
  const stacks::CodePlace place = stacks::place_in_code(lines_, frame.file, address - 1);
  return {.file = place.source.file.empty() ? frame.file : place.source.file,
          .line = place.source.line,
          .function = place.function};
}

std::vector<CallSite> CompiledSites::user_sites(const std::vector<sources::RecordedFrame>& stack) {
  if (stack.size() != 1 || stack.front().line != 0 || !stack.front().function.starts_with(kMark)) {
    return model::user_sites(stack);
  }
  const sources::RecordedFrame& frame = stack.front();
  if (base::contains(frame.file, "/torch/lib/")) {
    return {};  // torch's own call of NCCL, on a thread without Python: no line of the program
  }
  const auto [known, fresh] = places_.try_emplace({frame.file, frame.function});
  if (fresh) {
    known->second = look_up(frame);
  }
  return {known->second};
}

}  // namespace ddpdoctor::model
