// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/held_output.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/recorded_place.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "exit-hang";

/// Those outside the command's tree that hold the other end of the pipe at which `thread` waits;
/// none when one of them has run lately, or when somebody else holds it as well.
std::vector<const model::Fact*> idle_holders(const model::JobModel& job,
                                             const model::Thread& thread) {
  constexpr double kIdle = 2;  // seconds
  std::vector<const model::Fact*> holders;
  if (!thread.waits_on || (thread.waits_on->kind != "pipe" && thread.waits_on->kind != "input")) {
    return holders;
  }
  const std::string& detail = thread.waits_on->detail;
  for (const model::Fact* fact : model::facts(job, "stray")) {
    if (detail.find(fmt::format(" pid {} (", fact->pid.value_or(0))) != std::string::npos) {
      holders.push_back(fact);
    }
  }
  std::size_t named = 0;
  for (std::size_t at = detail.find(" pid "); at != std::string::npos;
       at = detail.find(" pid ", at + 1)) {
    ++named;
  }
  const bool idle = std::all_of(holders.begin(), holders.end(), [](const model::Fact* fact) {
    return fact->number("idle_seconds").value_or(0) >= kIdle;
  });
  return idle && named == holders.size() ? holders : std::vector<const model::Fact*>{};
}

/// Where a rank started it; by its time where its pid was not known then.
const model::Fact* start_of(const model::JobModel& job, const model::Fact& stray) {
  constexpr double kNear = 0.1;  // seconds
  const double born = stray.number("start_time").value_or(0);
  const auto distance = [born](const model::Fact& fact) {
    return std::abs(fact.number("time").value_or(0) - born);
  };
  const model::Fact* best = nullptr;
  for (const model::Fact* fact : model::facts(job, "child-started")) {
    if (fact->pid && fact->pid == stray.pid) {
      return fact;
    }
    const bool other = stray.rank && fact->rank != stray.rank;
    const bool near = !fact->pid && !other && distance(*fact) < kNear;
    best = near && (best == nullptr || distance(*fact) < distance(*best)) ? fact : best;
  }
  return best;
}

}  // namespace

std::optional<Finding> output_is_held(const graph::Examination& examination,
                                      const model::Process& reader) {
  const model::JobModel& job = examination.job;
  const model::Thread* main = model::main_thread(reader);
  std::vector<Suspect> suspects;
  std::string left;
  for (const model::Fact* stray :
       main == nullptr ? std::vector<const model::Fact*>{} : idle_holders(job, *main)) {
    const std::string name =
        fmt::format("process {} ({})", *stray->pid, stray->text("command").value_or("?"));
    Suspect suspect = suspect_in(examination, reader, main);
    suspect.rank = std::nullopt;
    suspect.confidence = Confidence::kLikely;
    suspect.note = fmt::format("process {} reads here until {} ends", reader.pid, name);
    if (const model::Fact* start = start_of(job, *stray)) {
      suspect.rank = start->rank;
      const model::CallSite place = recorded_place(*start);
      suspect.place = place.known() ? place : suspect.place;
      suspect.note = place.known() ? fmt::format("{} was started here", name) : suspect.note;
    }
    suspect.evidence = fmt::format(
        "{} holds the other end of the pipe at which process {} waits, "
        "and has not run for {}",
        name, reader.pid, base::duration(stray->number("idle_seconds").value_or(0)));
    left += (left.empty() ? "" : " and ") + name;
    suspects.push_back(std::move(suspect));
  }
  if (suspects.empty()) {
    return std::nullopt;
  }
  Finding finding = accuse(examination, kKind, suspects);
  finding.summary = fmt::format(
      "all ranks are done, but {}{} {} the output open that process {} reads", left,
      finding.culprits.empty() ? std::string()
                               : fmt::format(", left behind by {},", said(finding.culprits)),
      suspects.size() == 1 ? "lives on and holds" : "live on and hold", reader.pid);
  finding.fix =
      "End it before the rank ends, or start it with an output of its own "
      "(stdout=subprocess.DEVNULL, stderr too): a pipe ends when its last holder has closed it.";
  return finding;
}

}  // namespace ddpdoctor::detectors
