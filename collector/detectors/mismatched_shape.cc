// SPDX-License-Identifier: Apache-2.0
// Same operation and sequence number, different element counts: gloo aborts a rank, NCCL hangs or
// corrupts data.
#include <algorithm>
#include <csignal>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/numbers.h"
#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/gloo_words.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/message_sizes.h"
#include "collector/detectors/evidence/origins.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/split_sizes.h"
#include "collector/detectors/evidence/told_differences.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/ddp_constructor.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/detectors/partings/empty_metric.h"
#include "collector/model/operation_kinds.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::mismatched_shape {
namespace {

using graph::Disagreement;

std::string size_of(const model::CollectiveCall& call, bool splits) {
  if (splits && call.splits) {
    return call.output_splits ? fmt::format("splits {} and expected {}", shape_text(*call.splits),
                                            shape_text(*call.output_splits))
                              : "splits " + shape_text(*call.splits);
  }
  if (call.shape) {
    return shape_text(*call.shape);
  }
  return !call.count        ? std::string("an unknown size")
         : *call.count == 1 ? std::string("1 element")
                            : base::grouped(static_cast<std::uint64_t>(*call.count)) + " elements";
}

/// What it sends to itself differs from what it expects from itself.
bool contradicts_itself(const graph::Examination& examination, const model::CollectiveCall& call) {
  const model::ProcessGroup* group = model::group(examination.job, call.group);
  if (group == nullptr || !call.splits || !call.output_splits) {
    return false;
  }
  const auto at = std::find(group->ranks.begin(), group->ranks.end(), call.rank);
  const auto index = static_cast<std::size_t>(at - group->ranks.begin());
  return index < call.splits->size() && index < call.output_splits->size() &&
         (*call.splits)[index] != (*call.output_splits)[index];
}

Finding from_records(const graph::Examination& examination, const graph::Divergence& divergence) {
  const Disagreed disagreed = disagreed_at(examination, divergence);
  Finding finding = finding_of(examination, divergence, disagreed);
  finding.kind = "mismatched-shape";
  const bool splits = divergence.about == Disagreement::kSplits;
  finding.summary = fmt::format("{} passed {} to {}, but {} passed {}", said(disagreed.named),
                                size_of(*disagreed.odd_call, splits),
                                call_name(examination.job, *disagreed.rest_call),
                                said(disagreed.rest), size_of(*disagreed.rest_call, splits));
  if (std::string pair = splits ? split_pair(examination, divergence) : ""; !pair.empty()) {
    finding.summary = std::move(pair);
  }
  if (splits && contradicts_itself(examination, *disagreed.odd_call)) {
    finding.culprits = disagreed.odd;  // then two ranks are not a tie
    finding.waiting = finding.waiting.minus(finding.culprits);
  }
  finding.fix =
      splits
          ? "Exchange the split sizes first (all_to_all_single of the counts), so that each rank "
            "expects what the others send."
          : "Pad to the same size before the call (all_reduce the length with MAX first), or "
            "gather the sizes.";
  tell_empty_metric(examination, disagreed, finding);
  return finding;
}

// From stacks alone: blocked in one operation of one group with tensors of different shapes.
std::optional<Finding> from_stacks(const graph::Examination& examination) {
  std::map<model::Rank, std::string> shapes;
  const graph::Standing* one = nullptr;
  for (const graph::Standing& standing : examination.standings) {
    if (standing.activity != graph::Activity::kCollective || !standing.call ||
        !standing.call->shape || !model::kind_of(standing.call->operation).one_input_size) {
      continue;
    }
    if (one != nullptr && (one->call->operation != standing.call->operation ||
                           one->call->group != standing.call->group ||
                           one->call->sequence != standing.call->sequence)) {
      return std::nullopt;
    }
    one = &standing;
    shapes[standing.rank] = shape_text(*standing.call->shape);
  }
  const std::vector<Camp> all = camps(shapes);
  if (all.size() < 2 || !may_hang(examination)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "mismatched-shape";
  finding.confidence = Confidence::kLikely;
  finding.culprits = has_majority(all) ? minority(all) : model::RankSet{};
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  finding.summary =
      fmt::format("{} passed {} to {}, but {} passed {}", said(all[1].ranks), all[1].key,
                  call_name(examination.job, *one->call), said(all[0].ranks), all[0].key);
  finding.fix =
      "Pad to the same size before the call (all_reduce the length with MAX first), or gather the "
      "sizes.";
  for (const Camp* camp : {&all[1], &all[0]}) {
    const graph::Standing* standing = examination.standing(camp->ranks.front());
    finding.locations.push_back(location(
        standing->user, camp->ranks,
        fmt::format("{} {} here with {}", said(camp->ranks), is_or_are(camp->ranks), camp->key)));
  }
  return finding;
}

// An all_to_all without progress: all ranks but a few split their input in the same way, or pass as
// many elements where splits are unknown. Uneven routing would differ on all ranks.
std::optional<Finding> from_splits(const graph::Examination& examination,
                                   const graph::GroupView& view) {
  std::map<model::Rank, std::string> inputs;
  const model::CollectiveCall* one = nullptr;
  for (const graph::RankProgress& progress : view.progress) {
    const model::CollectiveCall* call =
        examination.history.at(view.group.id, progress.rank, progress.enqueued);
    const bool open = call != nullptr && (call->state == model::CallState::kEnqueued ||
                                          call->state == model::CallState::kStarted);
    if (!open || (!call->splits && !call->count) ||
        call->operation.find("all_to_all") == std::string::npos ||
        (one != nullptr && (one->sequence != call->sequence ||
                            one->splits.has_value() != call->splits.has_value()))) {
      return std::nullopt;
    }
    one = call;
    inputs[progress.rank] = call->splits ? shape_text(*call->splits) : size_of(*call, false);
  }
  const std::vector<Camp> all = camps(inputs);
  const std::size_t most = all.empty() ? 0 : all.front().ranks.size();
  if (all.size() < 2 || most * 2 <= inputs.size() || most < 2 ||
      !(examination.still() || examination.job.ended)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "mismatched-shape";
  finding.confidence = one->splits ? Confidence::kLikely : Confidence::kPossible;
  finding.culprits = minority(all);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  const std::string name = call_name(examination.job, *one);
  finding.summary =
      one->splits
          ? fmt::format("{} split the input of {} into {}, but {} into {}", said(all[1].ranks),
                        name, all[1].key, said(all[0].ranks), all[0].key)
          : fmt::format("{} passed {} to {}, but {} passed {}", said(all[1].ranks), all[1].key,
                        name, said(all[0].ranks), all[0].key);
  finding.fix =
      "Exchange the split sizes first (all_to_all of the counts), so that each rank expects what "
      "the others send.";
  for (const Camp& camp : all) {
    const model::CollectiveCall* call =
        examination.history.at(view.group.id, camp.ranks.front(), one->sequence);
    if (call->call_site.known()) {
      const auto at = &camp == &all.front() ? finding.locations.end() : finding.locations.begin();
      finding.locations.insert(at, location(call->call_site, camp.ranks,
                                            fmt::format("{} {} here with {}", said(camp.ranks),
                                                        is_or_are(camp.ranks), camp.key)));
    }
  }
  return finding;
}

// From a log alone: gloo's own messages, and the calls in which the others then failed.
std::optional<Finding> from_words(const graph::Examination& examination) {
  const std::vector<GlooSizes> said_so = gloo_sizes(examination.job);
  if (said_so.empty() || examination.job.progress == model::Progress::kMoving) {
    return std::nullopt;
  }
  const GlooSizes& first = said_so.front();
  const std::string whom = first.rank ? fmt::format("rank {}", *first.rank) : "a rank";
  Finding finding;
  finding.kind = "mismatched-shape";
  finding.confidence = examination.job.ended ? Confidence::kCertain : Confidence::kLikely;
  finding.summary = fmt::format(
      "{} received {} bytes in a collective, but its own tensor takes {}: gloo aborted it", whom,
      first.received, first.expected);
  finding.fix =
      "Pass the same size on every rank, in the same order of calls. Run with "
      "TORCH_DISTRIBUTED_DEBUG=DETAIL to see which call differs.";
  for (const GlooSizes& sizes : said_so) {
    finding.evidence.push_back(
        {.rank = sizes.rank,
         .text =
             fmt::format("log of {}: {}",
                         sizes.rank ? fmt::format("rank {}", *sizes.rank) : std::string("a rank"),
                         base::elide(base::printable(sizes.line), 240))});
  }
  for (const model::Process* process : processes(examination.job)) {  // gloo aborts the receiver
    auto end = process->rank ? own_end(examination.job, *process->rank) : std::nullopt;
    if (end && exit_of(examination.job, *process)->signal == SIGABRT) {
      finding.evidence.push_back(std::move(*end));
    }
  }
  std::map<model::CallSite, model::RankSet> places;
  for (const Traceback& one : tracebacks(examination.job)) {
    if (one.place.known() && is_consequence(one.exception)) {
      model::RankSet& ranks = places[one.place];
      ranks = one.rank ? ranks.united({*one.rank}) : ranks;
    }
  }
  for (const auto& [site, ranks] : places) {
    finding.locations.push_back(
        location(site, ranks,
                 fmt::format("{} failed in this call", ranks.empty() ? "a rank" : said(ranks))));
    finding.waiting = finding.waiting.united(ranks);
  }
  finding.details["received_bytes"] = first.received;
  finding.details["expected_bytes"] = first.expected;
  return finding;
}

/// accelerate's debug mode compares the shapes before the call.
std::optional<Finding> compared_by_accelerate(const graph::Examination& examination) {
  const ToldDifference difference = told_difference(examination.job, "mismatched-shape");
  if (difference.exception.empty()) {
    return std::nullopt;
  }
  const ToldSides sides = sides_of(difference);
  Finding finding = finding_of(examination, difference, sides, "mismatched-shape");
  const std::string call = difference.operation.empty() ? "the call" : difference.operation;
  finding.summary = sides.odd.empty()
                        ? fmt::format("the ranks passed tensors of different shapes to {}", call)
                        : fmt::format("{} passed {} to {}, but {} passed {}", said(sides.odd),
                                      sides.odd_value, call, said(sides.rest), sides.rest_value);
  finding.fix =
      "Use the same batch size on every rank, or call accelerator.pad_across_processes() on the "
      "tensor before this call.";
  return finding;
}

/// The ranks that were ended by SIGABRT.
model::RankSet aborted(const graph::Examination& examination) {
  std::vector<model::Rank> ranks;
  for (const graph::Standing& standing : examination.standings) {
    const auto* process = standing.process;
    if (process != nullptr && process->exit && process->exit->signal == SIGABRT) {
      ranks.push_back(standing.rank);
    }
  }
  for (const model::Fact* fact : model::facts(examination.job, "exit")) {
    if (fact->rank && exit_told_by(*fact).signal == SIGABRT) {
      ranks.push_back(*fact->rank);
    }
  }
  return model::RankSet(std::move(ranks));
}

/// gloo aborts the receiver of a message that is longer than its buffer.
std::optional<Finding> from_messages(const graph::Examination& examination) {
  for (const model::Rank rank : aborted(examination)) {
    const auto unlike = overlong_message(examination, rank);
    if (!unlike) {
      continue;
    }
    const auto& [sent, received] = *unlike;
    Finding finding;
    finding.kind = "mismatched-shape";
    finding.confidence = Confidence::kCertain;
    finding.culprits = {received->rank, sent->rank};
    finding.summary =
        fmt::format("rank {} sent {} to rank {}, which expected {} and was aborted", sent->rank,
                    size_of(*sent, false), received->rank, size_of(*received, false));
    finding.locations = {
        location(received->call_site, {received->rank},
                 fmt::format("rank {} receives here into {}", received->rank,
                             size_of(*received, false))),
        location(sent->call_site, {sent->rank},
                 fmt::format("rank {} sent {} here", sent->rank, size_of(*sent, false)))};
    finding.waiting = waiting_ranks(examination).minus(finding.culprits);
    finding.fix =
        "Use the same size on both sides: send the shape first, or pad the smaller tensor (the "
        "last batch of a pipeline).";
    return finding;
  }
  return std::nullopt;
}

Findings detect(const graph::Examination& examination) {
  Findings findings;
  if (auto finding = from_messages(examination)) {
    findings.push_back(std::move(*finding));
  }
  for (const graph::GroupView& view : examination.groups) {
    const graph::Divergence* divergence = view.disagreement(Disagreement::kShape);
    const graph::Divergence* splits = view.disagreement(Disagreement::kSplits);
    // A different call with another size is not a wrong size: its line differs.
    const bool other_call = divergence != nullptr && view.end_of_agreement() == divergence;
    if (divergence != nullptr && is_between_models(examination, *divergence)) {
      continue;
    }
    if (divergence != nullptr && !is_out_of_step(examination, *divergence) &&
        (!other_call || is_unexplained(examination, view.group.id))) {
      findings.push_back(from_records(examination, *divergence));
    } else if (splits != nullptr) {
      findings.push_back(from_records(examination, *splits));
    } else if (auto finding = from_splits(examination, view)) {
      findings.push_back(std::move(*finding));
    } else if (auto sums = mismatched_sums(examination, view)) {
      findings.push_back(std::move(*sums));
    }
  }
  if (findings.empty()) {
    findings = without_culprits(findings_from_text(examination, "mismatched-shape"));
  }
  if (findings.empty() && examination.history.empty()) {
    auto finding = compared_by_accelerate(examination);
    finding = finding ? std::move(finding) : from_stacks(examination);
    finding = finding ? std::move(finding) : from_words(examination);
    if (finding) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: with gloo one rank aborts and the others report "Connection closed by peer"; the rank that prints the first error
is often not the cause. With NCCL the job hangs in the collective, or continues with wrong numbers.

Why: all ranks of a group must pass tensors of one size to all_reduce, broadcast, all_gather and similar operations. Batches of
different length, an empty shard, a smaller last batch, or models that differ between ranks break this rule.

How ddpdoctor knows: group, sequence number and operation are the same, but shape or count differ in the records (or in the blocked
calls).

Fix: agree on the size.

    +    longest = torch.tensor([x.numel()])
    +    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    +    x = torch.nn.functional.pad(x, (0, int(longest) - x.numel()))
         dist.all_gather(outputs, x)
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "mismatched-shape",
                           .title = "Ranks pass tensors of different sizes to one collective",
                           .explanation = kExplanation,
                           .detect = detect};

}  // namespace ddpdoctor::detectors::mismatched_shape
