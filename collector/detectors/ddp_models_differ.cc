// SPDX-License-Identifier: Apache-2.0
// The parameters differ between ranks when the model is wrapped: DDP compares them in its
// constructor and some ranks raise or wait.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/tracebacks.h"
#include "collector/detectors/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::array<std::string_view, 3> kTexts = {
    "appears not to match sizes of the same param", "DDP expects same model across all ranks",
    "appears not to match strides of the same param"};

std::optional<std::string> line_with(const std::string& text, std::string_view part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t start = text.rfind('\n', at);
  const std::size_t from = start == std::string::npos ? 0 : start + 1;
  return std::string(base::trim(std::string_view(text).substr(from, text.find('\n', at) - from)));
}

bool constructs(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kDdpConstructor;
}

bool has_ended(const graph::Standing& standing) {
  return standing.activity == graph::Activity::kDead ||
         standing.activity == graph::Activity::kExited ||
         standing.activity == graph::Activity::kExit;
}

/// The lines at which the ranks that complain wrapped their model, from their tracebacks.
void add_complaints(const graph::Examination& examination, Finding& finding) {
  std::map<model::CallSite, model::RankSet> places;
  for (const LogStream& stream : log_streams(examination.job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const bool complains = std::any_of(kTexts.begin(), kTexts.end(), [&](std::string_view text) {
        return stream[i].text.find(text) != std::string_view::npos;
      });
      const model::CallSite site = complains ? user_place_above(stream, i) : model::CallSite{};
      if (site.known()) {
        model::RankSet& there = places[site];
        if (stream[i].rank) {
          there.insert(*stream[i].rank);
        }
      }
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

Findings detect(const graph::Examination& examination) {
  const model::RankSet inside = ranks_where(examination, constructs);
  const model::RankSet ended = ranks_where(examination, has_ended);
  Finding finding;
  finding.kind = "ddp-models-differ";
  for (const model::Log& log : examination.job.logs) {
    for (const std::string_view text : kTexts) {
      if (const auto line = line_with(log.text, text)) {
        finding.evidence.push_back({.rank = log.rank, .text = *line});
        finding.confidence = Confidence::kCertain;
        if (log.rank) {
          finding.culprits.insert(*log.rank);
        }
      }
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
  finding.fix =
      "Build the same model on every rank before wrapping it: same configuration, same vocabulary, "
      "same frozen parameters.";
  add_complaints(examination, finding);
  add_constructor(examination, inside, finding);
  return {finding};
}

constexpr std::string_view kExplanation =
    R"(What you see: the job stops at DistributedDataParallel(model): some ranks raise, rank 0 waits in the constructor.

Why: DDP compares the parameters of all ranks when it is built. A vocabulary of another size, layers frozen or added on some ranks, or
another checkpoint make them differ.

How it is recognised: by DDP's own message in the logs, or by ranks that ended while others stand in the constructor.

The fix: build the model from the same configuration everywhere, and compare before wrapping it.

    +    print([(n, tuple(p.shape), p.requires_grad) for n, p in model.named_parameters()])
    -    model = DDP(Net(classes=len(my_part.labels)))
    +    model = DDP(Net(classes=NUM_CLASSES))
)";

}  // namespace

extern const Detector ddp_models_differ;
const Detector ddp_models_differ = {.kind = "ddp-models-differ",
                                    .title = "The model differs between ranks when DDP wraps it",
                                    .explanation = kExplanation,
                                    .detect = detect};

}  // namespace ddpdoctor::detectors
