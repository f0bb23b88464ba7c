// SPDX-License-Identifier: Apache-2.0
// torchmetrics first gathers the shape of each state (one int64 per dimension), then the state,
// padded to the largest. An empty list of values becomes one empty dimension of the metric's own
// type, which is a floating-point type (Metric._sync_dist, gather_all_tensors). So the padded sizes
// are equal, and the type or the number of dimensions shows the empty side.
#include "collector/detectors/partings/empty_metric.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// Where a metric's values come from.
struct Update {
  std::string call;  // "metric.update"
  model::CallSite where;
  std::optional<Block> under;  // the condition before it that each rank decides by itself
};

bool is_floating(std::string_view dtype) {
  constexpr std::array<std::string_view, 4> kWords = {"float", "half", "double", "complex"};
  return base::contains_any(dtype, kWords);
}

bool uses_torchmetrics(const graph::Examination& examination) {
  const auto names_it = [](std::string_view text) {
    return text.find("torchmetrics") != std::string_view::npos;
  };
  for (const graph::Standing& standing : examination.standings) {
    const auto* frames = standing.thread == nullptr ? nullptr : &standing.thread->frames;
    if (frames != nullptr && std::any_of(frames->begin(), frames->end(),
                                         [&](const auto& frame) { return names_it(frame.file); })) {
      return true;
    }
  }
  const auto& logs = examination.job.logs;
  const auto& sources = examination.job.sources;
  return std::any_of(logs.begin(), logs.end(),
                     [&](const model::Log& log) { return names_it(log.text); }) ||
         std::any_of(sources.begin(), sources.end(), [&](const auto& file) {
           return std::any_of(file.second.begin(), file.second.end(),
                              [&](const auto& line) { return names_it(line.second); });
         });
}

/// The object of `compute` in this statement: "self.auc"; empty if it is not such a call.
std::string_view metric_of(std::string_view statement) {
  constexpr std::string_view kCompute = ".compute";
  for (const program::Call& call : program::calls_in(statement)) {
    if (call.callee.ends_with(kCompute) && call.callee.size() > kCompute.size()) {
      return call.callee.substr(0, call.callee.size() - kCompute.size());
    }
  }
  return {};
}

bool updates(const Lines& lines, int line, std::string_view metric) {
  const std::string statement = program::statement_at(lines, line);
  const std::vector<program::Call> calls = program::calls_in(statement);
  return std::any_of(calls.begin(), calls.end(), [metric](const program::Call& call) {
    return call.callee.size() == metric.size() + std::string_view(".update").size() &&
           call.callee.starts_with(metric) && call.callee.ends_with(".update");
  });
}

/// The first update, in the function of `compute` (for an attribute: in its file), that a rank may
/// have skipped: one under a condition before one in a loop, which may have had no items.
std::optional<Update> update_of(const model::JobModel& job, const model::CallSite& compute,
                                std::string_view metric) {
  const Lines& lines = lines_of(job, compute.file);
  const auto extent = program::function_extent(lines, compute.line);
  const bool attribute = metric.find('.') != std::string_view::npos;
  std::optional<Update> found;
  for (const auto& [line, text] : lines) {
    const bool elsewhere = extent && (line < extent->first || line > extent->second);
    const bool may = text.find(".update(") != std::string::npos && !(elsewhere && !attribute);
    if (!may || !updates(lines, line, metric)) {
      continue;
    }
    Update update{
        .call = std::string(metric) + ".update",
        .where = {.file = compute.file,
                  .line = line,
                  .function = elsewhere ? function_around(lines, line) : compute.function},
        .under = std::nullopt};
    for (Block& block : program::deciding_branches(lines, line)) {
      if (!is_loop(block) && dependence_of(job, lines, block) != program::Dependence::kNone) {
        update.under = std::move(block);
        break;
      }
    }
    const bool may_be_left_out = update.under || program::loop_around(lines, line);
    if (may_be_left_out && (!found || (update.under && !found->under))) {
      found = std::move(update);
    }
  }
  return found;
}

/// True if the odd side's state is empty, false if the rest's is; nullopt if the calls show
/// neither.
std::optional<bool> odd_is_empty(const Disagreed& disagreed) {
  const model::CollectiveCall& odd = *disagreed.odd_call;
  const model::CollectiveCall& rest = *disagreed.rest_call;
  if (odd.operation != "all_gather" || rest.operation != "all_gather" ||
      odd.call_site != rest.call_site || odd.dtype.empty() || rest.dtype.empty()) {
    return std::nullopt;
  }
  if (odd.dtype != rest.dtype) {
    return is_floating(odd.dtype) == is_floating(rest.dtype)
               ? std::nullopt
               : std::optional(is_floating(odd.dtype));
  }
  const auto dimensions = [](const model::CollectiveCall& call) -> std::int64_t {
    return call.shape && call.shape->size() == 1 ? call.shape->front() : 0;
  };
  const std::int64_t ours = dimensions(odd);
  const std::int64_t theirs = dimensions(rest);
  constexpr std::int64_t kMost = 8;  // number of dimensions; a metric's values have few
  const bool one_is_flat = (ours == 1) != (theirs == 1);
  return odd.dtype == "int64" && one_is_flat && ours > 0 && theirs > 0 && ours <= kMost &&
                 theirs <= kMost
             ? std::optional(ours == 1)
             : std::nullopt;
}

void tell_update(const Update& update, const model::RankSet& empty, Finding& finding) {
  const std::string place_of_it = line_of(update.where);
  finding.locations.push_back(
      location(update.where, empty, fmt::format("{} skipped this update", said(empty))));
  if (!update.under) {
    finding.fix = fmt::format(
        "Call {}() ({}) on every rank before compute(); or all_reduce the number of values and "
        "call compute() only if every rank has some.",
        update.call, place_of_it);
    return;
  }
  const Branch branch = branch_of(*update.under, update.where, program::Dependence::kData, true);
  finding.locations.push_back(location(branch.where, {}, "decides which ranks call it"));
  finding.fix = fmt::format(
      "Call {}() ({}) on every rank: `{}` was false on {}. Or all_reduce the number of values and "
      "call compute() only if every rank has some.",
      update.call, place_of_it, branch.condition, said(empty));
}

}  // namespace

bool tell_empty_metric(const graph::Examination& examination, const Disagreed& disagreed,
                       Finding& finding) {
  const auto odd = odd_is_empty(disagreed);
  const model::CallSite& site = disagreed.odd_call->call_site;
  const std::string statement =
      odd ? program::statement_at(lines_of(examination.job, site.file), site.line) : std::string();
  const std::string_view metric = metric_of(statement);
  const auto update = metric.empty() ? std::nullopt : update_of(examination.job, site, metric);
  if (!update || !uses_torchmetrics(examination)) {
    return false;
  }
  const model::RankSet& empty = *odd ? disagreed.odd : disagreed.rest;
  const model::RankSet& others = *odd ? disagreed.rest : disagreed.odd;
  const model::CollectiveCall& call = *odd ? *disagreed.odd_call : *disagreed.rest_call;
  const model::CollectiveCall& others_call = *odd ? *disagreed.rest_call : *disagreed.odd_call;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.culprits = empty;
  finding.waiting = finding.waiting.united(others).minus(empty);
  finding.summary = fmt::format(
      "{} had no values in `{}` when compute() gathered it: torchmetrics sent {} for the empty "
      "state, but {} sent {} ({})",
      said(empty), metric,
      call.dtype != others_call.dtype ? call.dtype : std::string("one dimension"), said(others),
      call.dtype != others_call.dtype ? others_call.dtype
                                      : fmt::format("{}", others_call.shape->front()),
      call_name(examination.job, call));
  tell_update(*update, empty, finding);
  return true;
}

}  // namespace ddpdoctor::detectors
