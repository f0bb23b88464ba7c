// SPDX-License-Identifier: Apache-2.0
// A branch of the model leaves parameters without gradient on some ranks: their bucket is not
// reduced there, and the backward of the others waits for it. The raising form ("Expected to have
// finished reduction") is read from the logs.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/gradient_sync.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/parting_finding.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/partings/skipped_step.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/detectors/partings/unused_branch.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::unused_parameters {
namespace {

constexpr std::size_t kLongestList = 240;  // characters of the parameters in a sentence
constexpr std::size_t kLongestDetail = 20'000;
constexpr std::size_t kMostEvidence = 10;

/// Parameters that a reducer of a culprit lacks in its newest backward and that no other rank
/// lacks, by the names that the agent recorded.
std::vector<std::string> parameters_without_gradient(const model::JobModel& job,
                                                     const model::RankSet& culprits) {
  std::vector<std::string> missed;
  std::vector<std::string> missed_by_all;
  for (const model::Fact* fact : model::facts(job, "reducer")) {
    const std::vector<std::string> names = fact->list("not_ready");
    const bool culprit = fact->rank && culprits.contains(*fact->rank);
    std::vector<std::string>& side = culprit ? missed : missed_by_all;
    side.insert(side.end(), names.begin(), names.end());
  }
  std::erase_if(missed, [&](const std::string& name) {
    return std::find(missed_by_all.begin(), missed_by_all.end(), name) != missed_by_all.end();
  });
  std::sort(missed.begin(), missed.end());
  missed.erase(std::unique(missed.begin(), missed.end()), missed.end());
  return missed;
}

void tell(const graph::Examination& examination, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.summary = fmt::format(
      "{} did not use some parameters and reduced no bucket for them; {} in backward for that "
      "bucket ({})",
      said(parting.odd.ranks), ranks_do(parting.rest.ranks, "is waiting", "are waiting"),
      waiting_call(examination, explanation));
  finding.fix = kFindUnused;
  std::optional<model::CallSite> cause = branch_around_parameters(
      examination.job, parameters_without_gradient(examination.job, parting.odd.ranks));
  cause = cause ? cause : branch_in_forward(examination.job);
  const char* note = "this branch skips parameters";
  if (!cause && parting.rest.site().known()) {
    cause = parting.rest.site();
    note = "the backward that did not reduce every bucket";
  }
  if (cause) {
    finding.locations.insert(finding.locations.begin(), location(*cause, parting.odd.ranks, note));
  }
  // Without records of the reducers, a skipped backward looks the same.
  const auto skip = explanation.fork && !began_fewer_backwards(examination.job, parting)
                        ? skipped_step(examination.job, *explanation.fork)
                        : std::nullopt;
  if (skip) {
    finding.confidence = at_most(finding.confidence, Confidence::kLikely);
    finding.fix += fmt::format(" Or make every rank run the step that {} skipped ({}).",
                               said(parting.odd.ranks), line_of(skip->where));
  } else if (cause && finding.confidence != Confidence::kPossible) {
    add_opposite_outcome(examination.job, *cause, {}, parting, finding);
  }
}

void add_names(const model::JobModel& job, Finding& finding) {
  const std::vector<std::string> names = parameters_without_gradient(job, finding.culprits);
  if (names.empty()) {
    return;
  }
  finding.evidence.insert(
      finding.evidence.begin(),
      {.rank = finding.culprits.front(),
       .text = fmt::format("{} {} no gradient for {}", said(finding.culprits),
                           has_or_have(finding.culprits), fmt::join(names, ", "))});
  finding.details["parameters"] = names;
}

/// With a static graph, DDP expects the parameters of the first step in every step, and does not
/// search for unused ones.
void advise_on_static_graph(const model::JobModel& job, Finding& finding) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, line] : lines) {
      const bool set = line.find("static_graph=True") != std::string::npos ||
                       line.find("._set_static_graph(") != std::string::npos;
      if (set && model::is_user_file(file)) {
        finding.locations.push_back(location({.file = file, .line = number, .function = {}}, {},
                                             "declares that the graph is the same in every step"));
        finding.fix =
            "Remove static_graph and set find_unused_parameters=True: the used parameters change "
            "from step to step. Or make the loss depend on every parameter (add 0 * "
            "unused.sum()).";
        return;
      }
    }
  }
}

/// What the next forward raises: torch's own message, and Lightning's version of it.
constexpr std::array<std::string_view, 2> kRaised = {
    "Expected to have finished reduction in the prior iteration",
    "has parameters that were not used in producing the loss"};

/// The message that a line contains; empty if none.
std::string_view raised_in(std::string_view line) {
  const auto* const found = std::find_if(
      kRaised.begin(), kRaised.end(),
      [line](std::string_view words) { return line.find(words) != std::string_view::npos; });
  return found == kRaised.end() ? std::string_view() : *found;
}

constexpr std::string_view kWithout = "did not receive grad for rank ";

/// torch's report of the parameters: always by number, by name with TORCH_DISTRIBUTED_DEBUG.
struct Told {
  model::RankSet ranks;  // ranks that reported it
  std::map<model::Rank, std::string> numbers;
  std::map<model::Rank, std::string> names;
  std::string_view raised{};  // one of kRaised
};

/// "Parameter indices which did not receive grad for rank 1: 2 3"; its rank is a group rank.
void read_parameters(std::string_view line, std::optional<model::Rank> rank, Told& told) {
  const std::size_t at = line.find(kWithout);
  const std::size_t colon = at == std::string_view::npos ? at : line.find(": ", at);
  if (colon == std::string_view::npos) {
    return;
  }
  const std::string_view whose = line.substr(at + kWithout.size(), colon - at - kWithout.size());
  int number = 0;
  const auto [end, error] = std::from_chars(whose.data(), whose.data() + whose.size(), number);
  if (error != std::errc() || end != whose.data() + whose.size() || number < 0 ||
      number >= model::kMaxWorldSize) {
    return;
  }
  auto& side = line.find("indices") < at ? told.numbers : told.names;
  side.emplace(rank.value_or(number), base::trim(line.substr(colon + 2)));
  told.ranks.insert(rank.value_or(number));
}

Told told_by_logs(const model::JobModel& job) {
  Told told;
  for (const LogStream& stream : job.logs.empty() ? std::vector<LogStream>{} : log_streams(job)) {
    for (const LogLine& line : stream) {
      if (const std::string_view words = raised_in(line.text); !words.empty()) {
        told.raised = words;
        told.ranks = line.rank ? told.ranks.united({*line.rank}) : told.ranks;
      }
      read_parameters(line.text, line.rank, told);
    }
  }
  return told;
}

/// "14 15 16" or "a.weight, a.bias", split.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view word : base::split(text.substr(0, kLongestDetail), ' ')) {
    word = base::trim(word);
    word.remove_suffix(word.ends_with(',') ? 1 : 0);
    if (!word.empty()) {
      out.emplace_back(word);
    }
  }
  return out;
}

/// The line of the forward that raised.
void add_raising_lines(const model::JobModel& job, Finding& finding) {
  std::map<model::CallSite, model::RankSet> places;
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const bool raised = !raised_in(stream[i].text).empty();
      const model::CallSite place = raised ? user_place_above(stream, i) : model::CallSite{};
      if (place.known()) {
        model::RankSet& ranks = places[place];
        ranks = stream[i].rank ? ranks.united({*stream[i].rank}) : ranks;
      }
    }
  }
  for (const auto& [place, ranks] : places) {
    finding.locations.push_back(location(place, ranks, "this forward raised"));
  }
}

void add_raised(const graph::Examination& examination, Findings& findings) {
  const Told told = findings.empty() ? told_by_logs(examination.job) : Told{};
  if (told.raised.empty()) {
    return;
  }
  const model::RankSet& ranks = told.ranks;
  const auto& by_rank = told.names.empty() ? told.numbers : told.names;
  std::string without;
  std::vector<std::string> parameters;
  if (const auto names = parameters_without_gradient(examination.job, ranks); !names.empty()) {
    without = fmt::format(
        " (without a gradient: {})",
        base::elide(base::printable(fmt::format("{}", fmt::join(names, ", "))), kLongestList));
  } else if (!by_rank.empty()) {
    const std::string& first = by_rank.begin()->second;
    parameters = words_of(first);
    without = fmt::format(
        " (without a gradient: {}{})", told.names.empty() ? "parameters " : "",
        base::elide(base::printable(fmt::format("{}", fmt::join(parameters, ", "))), kLongestList));
  }
  Finding finding;
  finding.kind = "unused-parameters";
  const bool over_it =
      ranks.empty() ? outlived(examination, {})
                    : std::all_of(ranks.begin(), ranks.end(),
                                  [&](model::Rank rank) { return outlived(examination, rank); });
  finding.confidence = over_it ? Confidence::kPossible : Confidence::kCertain;
  finding.culprits = ranks;
  finding.summary = fmt::format(
      "{} started a forward, but the previous backward had not reduced every parameter{}",
      ranks.empty() ? "a rank" : said(ranks), without);
  finding.fix = told.raised == kRaised.front()
                    ? kFindUnused
                    : "Pass strategy=\"ddp_find_unused_parameters_true\" to Trainer, or make the "
                      "loss depend on every parameter (add 0 * unused.sum()).";
  finding.evidence.push_back({.rank = std::nullopt, .text = fmt::format("log: {}", told.raised)});
  for (const auto& [rank, list] : by_rank) {
    if (finding.evidence.size() < kMostEvidence) {
      finding.evidence.push_back(
          {.rank = rank,
           .text = fmt::format("log: rank {} had no gradient for {}{}", rank,
                               told.names.empty() ? "parameters " : "",
                               base::elide(base::printable(list), kLongestList))});
    }
  }
  if (const auto branch = branch_in_forward(examination.job)) {
    finding.locations.push_back(location(*branch, ranks, "this branch skips parameters"));
  }
  add_raising_lines(examination.job, finding);
  if (!parameters.empty()) {
    finding.details["parameters"] = parameters;
  }
  findings.push_back(std::move(finding));
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_with(examination, Cause::kUnused, "unused-parameters",
                                    [&](const Explanation& explanation, Finding& finding) {
                                      tell(examination, explanation, finding);
                                    });
  add_raised(examination, findings);
  if (findings.empty()) {
    findings = unseen_findings(examination, "unused-parameters");
  }
  for (Finding& finding : findings) {
    add_names(examination.job, finding);
    advise_on_static_graph(examination.job, finding);
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: the job hangs in backward on most ranks; one rank has finished it and is in the next collective of the same step or in the
next forward. Or the next forward raises "Expected to have finished reduction in the prior iteration".

Why: DistributedDataParallel reduces gradients in buckets and starts a bucket when all its parameters have a gradient. If a rank does
not take a branch of the model, some parameters get no gradient, so this rank never reduces their bucket. The other ranks have started
that reduction and wait.

How ddpdoctor knows: some ranks wait for a bucket in backward; another rank is in a different call. The records of its reducer show
parameters without a gradient, or no condition in your source explains the difference and no record shows that all gradients were
ready. Or a log contains the error.

Fix: pass find_unused_parameters=True, or use all parameters in every step.

    -    model = DDP(model)
    +    model = DDP(model, find_unused_parameters=True)

         if has_boxes:
             out = out + self.boxes(features).sum()
    +    else:
    +        out = out + 0 * self.boxes(features).sum()
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "unused-parameters",
                           .title = "Parameters without gradient on some ranks",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::unused_parameters
