// SPDX-License-Identifier: Apache-2.0
// shm-leaked: segments in /dev/shm whose maker is dead and that nobody maps: memory that stays in
// use until somebody removes it. With the file_system strategy a killed job leaves them behind.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "shm-leaked";
constexpr double kMinutesOld = 60;  // younger ones may be on their way from one process to another
constexpr std::size_t kMostPaths = 20;  // in details; the rest is counted

bool is_leaked(const model::Fact& segment) {
  return segment.flag("creator_alive") == false && segment.flag("in_use") == false &&
         segment.number("age_seconds").value_or(0) >= kMinutesOld;
}

Findings detect(const graph::Examination& examination) {
  double bytes = 0;
  std::size_t count = 0;
  std::vector<std::string> paths;
  for (const model::Fact* segment : model::facts(examination.job, "shm-segment")) {
    if (!is_leaked(*segment)) {
      continue;
    }
    ++count;
    bytes += segment->number("bytes").value_or(0);
    if (paths.size() < kMostPaths) {
      paths.push_back(segment->text("path").value_or("?"));
    }
  }
  if (count == 0) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  // That nobody maps it is only known of this job's processes; that its maker is gone is a second
  // fact.
  finding.confidence = Confidence::kPossible;
  finding.summary =
      fmt::format("{} shared memory segment{} ({}) {} left behind by processes that are gone",
                  count, count == 1 ? "" : "s", base::bytes(bytes), count == 1 ? "was" : "were");
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text =
           fmt::format("{}: its maker is dead and no process of this job maps it", paths.front())});
  finding.fix =
      "ddpdoctor clean lists them with their owners and removes them; use the file_descriptor "
      "sharing strategy with a higher ulimit -n.";
  finding.details["paths"] = paths;
  return {std::move(finding)};
}

}  // namespace

extern const Detector shm_leaked;
const Detector shm_leaked{
    .kind = kKind,
    .title = "Shared memory was left behind",
    .explanation =
        R"(What you see: /dev/shm fills up from run to run; torch_PID_… files whose process is gone.

Why: under the file_system sharing strategy segments are files with names; a killed process cannot remove them.

How it is recognised: the maker's pid in the name belongs to no live process, and no process of the job maps the file.

Fix:
    $ ddpdoctor clean
    - torch.multiprocessing.set_sharing_strategy("file_system"))",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kLeak,
};

}  // namespace ddpdoctor::detectors
