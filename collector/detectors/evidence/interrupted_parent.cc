// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/interrupted_parent.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {

std::optional<Finding> interrupted_parent(const std::vector<FeltAnEnd>& felt) {
  const auto interrupted = [](const FeltAnEnd& one) {
    return one.exception.substr(0, one.exception.find(':')) == "KeyboardInterrupt";
  };
  if (felt.empty() || !std::all_of(felt.begin(), felt.end(), interrupted)) {
    return std::nullopt;
  }
  const auto parent = std::find_if(felt.begin(), felt.end(),
                                   [](const FeltAnEnd& one) { return one.waits_for_children; });
  const bool waits = parent != felt.end();
  const FeltAnEnd& shown = waits ? *parent : felt.front();
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.summary =
      waits
          ? fmt::format(
                "a person pressed Ctrl-C while a process waited for the processes that it had "
                "started{}; the log has no stack of those",
                placed(shown.place))
          : fmt::format("a person pressed Ctrl-C{}; the log does not show what the job waited for",
                        placed(shown.place));
  if (shown.place.known()) {
    finding.locations.push_back(
        location(shown.place, {}, waits ? "waited for its children here" : "was interrupted here"));
  }
  finding.evidence.push_back(
      {.rank = shown.rank, .text = "log: " + base::printable(shown.exception)});
  finding.fix =
      "Run `ddpdoctor attach PID` on this process while the job hangs: it reads the children, too. "
      "Or pass `py-spy dump --subprocesses --pid PID` to `ddpdoctor report`.";
  return finding;
}

}  // namespace ddpdoctor::detectors
