// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/pickle.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "collector/imports/documents/pickle_machine.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

}  // namespace

bool begins_like_pickle(std::string_view head) {
  constexpr unsigned char kNewest = 5;
  if (head.size() < 2) {
    return false;
  }
  const auto second = static_cast<unsigned char>(head[1]);
  if (head[0] == '\x80') {
    return second <= kNewest;
  }
  constexpr std::array<std::string_view, 8> kOld = {"(dp", "(lp",  "}q", "]q",
                                                    "(S'", "(cos", "}(", "]("};
  const bool old = std::any_of(kOld.begin(), kOld.end(),
                               [head](std::string_view start) { return head.starts_with(start); });
  const std::size_t line = head.find('\n');
  const bool names = head[0] == 'c' && line != std::string_view::npos && line < 64 &&
                     head.find('\n', line + 1) != std::string_view::npos &&
                     head.substr(0, line).find_first_of(" \t:=") == std::string_view::npos;
  return old || names;
}

tl::expected<void, PickleProblem> read_pickle(std::string_view bytes, const std::string& name,
                                              PlainDocument& out) {
  out.clear();
  if (bytes.size() > kMostBytes) {
    return tl::make_unexpected(PickleProblem{
        .error = {.what = fmt::format("{} is too large for a pickle", name), .hint = {}},
        .wants_to_run = false});
  }
  PickleMachine machine(bytes, out);
  const Step end = machine.run();
  if (end == Step::kStop) {
    return {};
  }
  if (end == Step::kCut) {
    machine.close();
    out.cut = true;
    return {};
  }
  if (machine.wants_to_run()) {
    return tl::make_unexpected(PickleProblem{
        .error = {.what = fmt::format("{} is refused: {}, which plain data never does", name,
                                      machine.complaint()),
                  .hint =
                      "nothing of it was executed; a flight-recorder dump holds plain data only"},
        .wants_to_run = true});
  }
  return tl::make_unexpected(
      PickleProblem{.error = {.what = fmt::format("{} is a damaged pickle: {} (at byte {})", name,
                                                  machine.complaint(), machine.at()),
                              .hint = {}},
                    .wants_to_run = false});
}

}  // namespace ddpdoctor::imports
