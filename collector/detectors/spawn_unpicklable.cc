// SPDX-License-Identifier: Apache-2.0
// spawn-unpicklable: with the spawn method, everything passed to a child is pickled, but a lambda
// or a local function cannot be. The start fails in one process and the others wait at the
// rendezvous.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::spawn_unpicklable {
namespace {

constexpr std::string_view kKind = "spawn-unpicklable";

/// The known message in an exception's text; nullptr for other exceptions.
const KnownException* known_as(const std::string& exception) {
  const auto all = known_exceptions();
  const auto found = std::find_if(all.begin(), all.end(), [&](const KnownException& known) {
    return known.kind == kKind && (exception.find(known.pattern) != std::string::npos ||
                                   known.pattern == "TypeError: " + exception);
  });
  return found == all.end() ? nullptr : &*found;
}

model::RankSet never_started(const graph::Examination& examination) {
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kAbsent;
  });
}

/// The program that starts the ranks has printed its traceback and only joins what it had started:
/// sys.last_value still holds the exception.
Findings failed_while_starting(const graph::Examination& examination) {
  for (const model::Fact* fact : model::facts(examination.job, "exception")) {
    const std::string text = fact->text("exception").value_or("");
    const KnownException* known = known_as(text);
    const model::Process* process =
        fact->pid ? model::process(examination.job, *fact->pid) : nullptr;
    if (known == nullptr || !fact->flag("printed").value_or(false) || process == nullptr ||
        process->role == model::Role::kRank) {
      continue;
    }
    const model::CallSite place{.file = fact->text("file").value_or(""),
                                .line = static_cast<int>(fact->number("line").value_or(0)),
                                .function = fact->text("function").value_or("")};
    Finding finding;
    finding.kind = kKind;
    finding.culprits = never_started(examination);
    add_waiting(examination, finding);
    // Its own exception is one fact, a rank missing because of it another.
    finding.confidence = finding.culprits.empty() ? Confidence::kLikely : Confidence::kCertain;
    if (place.known()) {
      Location line{.rank = std::nullopt,
                    .ranks = {},
                    .file = place.file,
                    .line = place.line,
                    .function = place.function,
                    .note = fmt::format("process {} failed here", process->pid)};
      finding.locations.insert(finding.locations.begin(), std::move(line));
    }
    finding.summary = fmt::format(
        "process {} {}{}{}{}", process->pid, known->meaning, detectors::placed(place),
        finding.culprits.empty() ? std::string()
                                 : fmt::format("; it has not started {}", said(finding.culprits)),
        and_who_waits(finding));
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("process {} failed with {}", process->pid, base::printable(text))});
    finding.fix = known->fix;
    finding.details["pid"] = static_cast<std::int64_t>(process->pid);
    return {std::move(finding)};
  }
  return {};
}

Findings detect(const graph::Examination& examination) {
  Findings failed = failed_while_starting(examination);
  return failed.empty() ? findings_from_text(examination, kKind) : failed;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A spawned process received an object that cannot be pickled",
    .explanation =
        R"(What you see: "Can't pickle local object" or "Can't get attribute" when processes are started.

Why: spawn starts a fresh interpreter, which must import the function that it runs by name.

How ddpdoctor knows: from Python's message in the output, or from the last exception that the program which starts the ranks has
printed (sys.last_value), with your line that started the process.

Fix:
    - mp.spawn(lambda rank: train(rank), nprocs=4)
    + mp.spawn(train, nprocs=4)          # train is defined at the top level of a module)",
    .detect = detect,
    .specificity = kMechanism,  // explains why a rank is missing at the rendezvous
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::spawn_unpicklable
