// SPDX-License-Identifier: Apache-2.0
// The parameters differ between ranks when the model is wrapped: DDP compares them in its
// constructor, and some ranks raise or wait.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/told_differences.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/ddp_constructor.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors::ddp_models_differ {
namespace {

constexpr std::string_view kKind = "ddp-models-differ";
constexpr std::string_view kFix =
    "Build the same model on every rank before wrapping it: same configuration, same vocabulary, "
    "same frozen parameters.";

/// A line with DDP's own message.
struct Complaint {
  LogLine line;
  std::string_view text;  // without ranks and numbers
  model::CallSite site;   // the user's line that wrapped the model
};

std::string_view complaint_in(std::string_view line) {
  return comparison_in(line, kKind);
}

/// Without those that follow from a timeout: the call that compares the models was aborted, and the
/// numbers that DDP prints are those of an empty buffer.
std::vector<Complaint> complaints(const model::JobModel& job) {
  std::vector<Complaint> out;
  if (std::none_of(job.logs.begin(), job.logs.end(),
                   [](const model::Log& log) { return !complaint_in(log.text).empty(); })) {
    return out;
  }
  const std::vector<Traceback> raised = tracebacks(job);
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const LogLine& line = stream[i];
      const std::string_view text = complaint_in(line.text);
      const bool effect = std::any_of(raised.begin(), raised.end(), [&line](const auto& one) {
        return one.after_timeout && one.log == line.log && one.number == line.number;
      });
      if (!text.empty() && !effect) {
        out.push_back({.line = line, .text = text, .site = user_place_above(stream, i)});
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Complaint& a, const Complaint& b) {
    return std::pair(a.line.log, a.line.number) < std::pair(b.line.log, b.line.number);
  });
  return out;
}

/// The line with its prefix.
std::string as_written(const model::Log& log, std::string_view part) {
  const std::string_view text = log.text;
  const auto at = static_cast<std::size_t>(part.data() - text.data());
  const std::size_t start = at == 0 ? text.npos : text.rfind('\n', at - 1);
  const std::size_t from = start == text.npos ? 0 : start + 1;
  return std::string(base::trim(text.substr(from, text.find('\n', at) - from)));
}

bool constructs(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kDdpConstructor;
}

bool has_ended(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kDead ||
         standing.activity == graph::Activity::kExited ||
         standing.activity == graph::Activity::kExit;
}

/// The first message of each kind in each log, and the lines at which these ranks wrapped their
/// model.
void add_complaints(const graph::Examination& examination, Finding& finding) {
  std::set<std::pair<std::size_t, std::string_view>> quoted;
  std::map<model::CallSite, model::RankSet> places;
  for (const Complaint& one : complaints(examination.job)) {
    const model::Log& log = examination.job.logs.at(one.line.log);
    if (quoted.insert({one.line.log, one.text}).second) {
      finding.evidence.push_back(
          {.rank = log.rank, .text = fmt::format("log: {}", as_written(log, one.line.text))});
      finding.culprits = log.rank ? finding.culprits.united({*log.rank}) : finding.culprits;
    }
    if (one.site.known()) {
      model::RankSet& there = places[one.site];
      there = one.line.rank ? there.united({*one.line.rank}) : there;
    }
  }
  for (const auto& [site, ranks] : places) {
    finding.locations.push_back(location(
        site, ranks,
        ranks.empty() ? "the model is wrapped here" : said(ranks) + " wrapped the model here"));
  }
}

void add_constructor(const graph::Examination& examination, const model::RankSet& inside,
                     Finding& finding) {
  if (!inside.empty()) {
    const graph::Standing* standing = examination.standing(inside.front());
    finding.locations.push_back(
        location(standing->user, inside,
                 fmt::format("{} {} in the constructor here", said(inside), is_or_are(inside))));
  }
}

/// The source line or a traceback shows that these calls belong to DDP's constructor.
bool is_named(const model::JobModel& job, const model::CollectiveCall& call) {
  constexpr std::array<std::string_view, 2> kInTorch = {"_sync_module_states",
                                                        "_verify_param_shape_across_processes"};
  const auto callees =
      program::callees_at(lines_of(job, call.call_site.file), call.call_site.line, job.sources);
  const auto in_logs = [&job](std::string_view function) {
    return std::any_of(job.logs.begin(), job.logs.end(), [function](const model::Log& log) {
      return log.text.find(function) != std::string::npos;
    });
  };
  return std::any_of(callees.begin(), callees.end(), program::is_ddp) ||
         std::any_of(kInTorch.begin(), kInTorch.end(), in_logs);
}

/// What a rank's model contributed to the call, in words.
std::string brought(const model::CollectiveCall& call, BuiltWith what) {
  const std::string size = call.count   ? fmt::format("{}", *call.count)
                           : call.shape ? shape_text(*call.shape)
                                        : "?";
  return what == BuiltWith::kShapes
             ? fmt::format("its list of parameter shapes takes {} numbers", size)
             : fmt::format("its parameters and buffers of one type are {} elements of {}", size,
                           call.dtype.empty() ? "a type not known" : call.dtype);
}

std::string who_differs(const Disagreed& disagreed) {
  if (disagreed.tie) {
    return fmt::format("{} and {} wrap different models", said(disagreed.rest),
                       said(disagreed.odd));
  }
  return fmt::format("{} {} a different model than {}", said(disagreed.odd),
                     disagreed.odd.size() == 1 ? "wraps" : "wrap", said(disagreed.rest));
}

/// The ranks passed contents with different size or type to a call of the constructor.
std::optional<Finding> from_records(const graph::Examination& examination,
                                    const graph::Divergence& divergence) {
  if (!is_between_models(examination, divergence)) {
    return std::nullopt;
  }
  const Disagreed disagreed = disagreed_at(examination, divergence);
  const BuiltWith what = built_with(examination, *disagreed.rest_call);
  const bool one_line = disagreed.odd_call->call_site == disagreed.rest_call->call_site;
  Finding finding = finding_of(examination, divergence, disagreed);
  finding.kind = kKind;
  if (finding.confidence != Confidence::kPossible &&
      is_named(examination.job, *disagreed.odd_call)) {
    finding.confidence = Confidence::kCertain;
  }
  finding.summary = fmt::format(
      "{}: DistributedDataParallel compared them in its constructor, and {} differ",
      who_differs(disagreed),
      what == BuiltWith::kShapes ? "the shapes of their parameters" : "parameters or buffers");
  finding.locations.clear();
  finding.evidence.clear();
  if (one_line) {
    finding.locations.push_back(location(disagreed.odd_call->call_site,
                                         disagreed.odd.united(disagreed.rest),
                                         "every rank wraps the model here"));
  }
  for (const auto& [ranks, call] : {std::pair(&disagreed.odd, disagreed.odd_call),
                                    std::pair(&disagreed.rest, disagreed.rest_call)}) {
    if (!one_line) {
      finding.locations.push_back(location(call->call_site, *ranks,
                                           fmt::format("{} wrapped the model here", said(*ranks))));
    }
    finding.evidence.push_back({.rank = ranks->front(),
                                .text = fmt::format("{}: {}", said(*ranks), brought(*call, what))});
  }
  finding.fix = fmt::format(
      "{} Print the names, shapes and requires_grad of model.named_parameters() on both sides and "
      "compare them.",
      kFix);
  return finding;
}

Findings all_from_records(const graph::Examination& examination) {
  Findings findings;
  for (const graph::GroupView& view : examination.groups) {
    for (const graph::Divergence& divergence : view.disagreements) {
      if (auto finding = from_records(examination, divergence)) {
        findings.push_back(std::move(*finding));
        break;
      }
    }
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, constructs);
  const model::RankSet ended = ranks_where(examination, has_ended);
  Finding finding;
  finding.kind = kKind;
  add_complaints(examination, finding);
  finding.confidence = finding.evidence.empty() ? finding.confidence : Confidence::kCertain;
  // All ranks that compare raise: the numbers say who differs.
  const ToldSides sides =
      finding.evidence.empty() ? ToldSides() : sides_of(told_difference(examination.job, kKind));
  finding.culprits = sides.majority ? sides.odd : finding.culprits;
  if (finding.evidence.empty()) {
    if (Findings recorded = all_from_records(examination); !recorded.empty()) {
      return recorded;
    }
  }
  if (finding.evidence.empty() && (inside.empty() || ended.empty() || !may_hang(examination))) {
    return {};
  }
  if (finding.evidence.empty()) {
    finding.confidence = Confidence::kPossible;
    finding.culprits = ended;
  }
  finding.waiting = inside.minus(finding.culprits);
  finding.summary = fmt::format(
      "the parameters of the model on {} differ from those of the other ranks when "
      "DistributedDataParallel wraps it",
      finding.culprits.empty() ? "some rank" : said(finding.culprits));
  if (sides.majority) {
    finding.summary =
        fmt::format("{} {} {} parameters and {} {} {} when DistributedDataParallel wraps the model",
                    said(sides.odd), sides.odd.size() == 1 ? "has" : "have", sides.odd_value,
                    said(sides.rest), sides.rest.size() == 1 ? "has" : "have", sides.rest_value);
  }
  finding.fix = kFix;
  add_constructor(examination, inside, finding);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stops at DistributedDataParallel(model): some ranks raise, rank 0 waits in the constructor.

Why: DDP compares the parameters of all ranks when it is built. They differ if the ranks have vocabularies of different sizes, layers
that are frozen or added on some ranks only, or different checkpoints.

How ddpdoctor knows: by DDP's own message in the logs, by recorded calls of its constructor in which the ranks passed lists or values of
different size, or by ranks that exited while others are in the constructor.

Fix: build the model from the same configuration on every rank, and compare the parameters before you wrap the model.

    +    print([(n, tuple(p.shape), p.requires_grad) for n, p in model.named_parameters()])
    -    model = DDP(Net(classes=len(my_part.labels)))
    +    model = DDP(Net(classes=NUM_CLASSES))
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = kKind,
                           .title = "The model differs between ranks when DDP wraps it",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::ddp_models_differ
