// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/held_output.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kHeldOutput = "exit-hang";

/// Processes outside the command's tree that hold the other end of a pipe.
struct Holders {
  std::vector<const model::Fact*> strays;
  bool idle = true;  // no other process holds it, and none of these has run recently
};

Holders holders_of(const model::JobModel& job, const model::Thread& reader) {
  constexpr double kIdle = 2;  // seconds
  Holders out;
  if (!reader.waits_on || (reader.waits_on->kind != "pipe" && reader.waits_on->kind != "input")) {
    return out;
  }
  const std::string& detail = reader.waits_on->detail;
  for (const model::Fact* fact : model::facts(job, "stray")) {
    if (detail.find(fmt::format(" pid {} (", fact->pid.value_or(0))) != std::string::npos) {
      out.strays.push_back(fact);
      out.idle = out.idle && fact->number("idle_seconds").value_or(0) >= kIdle;
    }
  }
  std::size_t named = 0;
  for (std::size_t at = detail.find(" pid "); at != std::string::npos;
       at = detail.find(" pid ", at + 1)) {
    ++named;
  }
  out.idle = out.idle && named == out.strays.size();
  return out;
}

/// The line at which a rank started it; found by time if its pid was unknown then.
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
  const Holders holders = main == nullptr ? Holders{} : holders_of(job, *main);
  for (const model::Fact* stray : holders.strays) {
    const std::string name =
        fmt::format("process {} ({})", *stray->pid, stray->text("command").value_or("?"));
    Suspect suspect = suspect_in(examination, reader, main);
    suspect.rank = std::nullopt;
    suspect.confidence = holders.idle ? Confidence::kLikely : Confidence::kPossible;
    suspect.note = fmt::format("process {} reads here until {} ends", reader.pid, name);
    if (const model::Fact* start = start_of(job, *stray)) {
      suspect.rank = start->rank;
      const model::CallSite place = recorded_place(*start);
      suspect.place = place.known() ? place : suspect.place;
      suspect.note = place.known() ? fmt::format("{} was started here", name) : suspect.note;
    }
    suspect.evidence = fmt::format(
        "{} holds the other end of the pipe at which process {} waits, and {}", name, reader.pid,
        holders.idle ? fmt::format("has not run for {}",
                                   base::duration(stray->number("idle_seconds").value_or(0)))
                     : "still runs");
    left += (left.empty() ? "" : " and ") + name;
    suspects.push_back(std::move(suspect));
  }
  if (suspects.empty()) {
    return std::nullopt;
  }
  Finding finding = accuse(examination, kHeldOutput, suspects);
  finding.summary = fmt::format(
      "all ranks are done, but {}{} {} the output open that process {} reads", left,
      finding.culprits.empty() ? std::string()
                               : fmt::format(", left behind by {},", said(finding.culprits)),
      suspects.size() == 1 ? "is still running and holds" : "are still running and hold",
      reader.pid);
  finding.fix =
      "End it before the rank exits, or start it with stdout=subprocess.DEVNULL (and stderr): a "
      "pipe ends when its last holder closes it.";
  return finding;
}

}  // namespace ddpdoctor::detectors
