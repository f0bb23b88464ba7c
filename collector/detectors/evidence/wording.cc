// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/wording.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/ahead_of_device.h"
#include "collector/detectors/evidence/ras_counts.h"
#include "collector/detectors/evidence/waited_for.h"
#include "collector/graph/framework_calls.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

// Larger sets of ranks are counted instead of listed (NCCL RAS's rule for outliers).
constexpr std::size_t kMostRanksListed = 10;

// Longer range lists are not readable.
constexpr std::size_t kLongestRanges = 60;

bool waits_in_call(const graph::Standing& standing) {
  return standing.call.has_value() && !standing.call->operation.empty();
}

std::string doing(const model::JobModel& job, const graph::Standing& standing) {
  using graph::Activity;
  switch (standing.activity) {
    case Activity::kUnobserved:
      return "was not observed";
    case Activity::kAbsent:
      return "has no process";
    case Activity::kDead:
      return "was killed";
    case Activity::kExited:
      return "has exited";
    case Activity::kBetweenCalls:
      return standing.call ? "has made no later call" : "finished its newest recorded call";
    case Activity::kIo:
      return "is reading or writing";
    case Activity::kDdpBackward:
      return "is waiting in backward for a gradient bucket of DistributedDataParallel";
    case Activity::kDdpForward:
      return "is waiting in the forward of DistributedDataParallel";
    case Activity::kDdpConstructor:
      return "is waiting in the constructor of DistributedDataParallel";
    default:
      break;
  }
  const model::WaitsOn* wait = standing.thread == nullptr || !standing.thread->waits_on
                                   ? nullptr
                                   : &*standing.thread->waits_on;
  if (wait != nullptr &&
      wait->kind == model::kElsewhere) {  // a log names the rank but not its line
    return "is at a line that the log does not show";
  }
  const bool counted =
      standing.process == nullptr && standing.call && is_counted_by_ras(job, standing.call->group);
  if (counted && standing.call->sequence == 0) {
    return "has launched no call";
  }
  if (counted && waits_in_call(standing)) {
    return "has last launched " + call_name(job, *standing.call);
  }
  if (waits_in_call(standing)) {
    return "is in " + call_name(job, *standing.call);
  }
  if (const auto waited = waited_for(job, standing)) {
    return "is " + waited->doing;
  }
  return "is " + std::string(graph::activity_name(standing.activity));
}

bool is_uncounted(const model::JobModel& job, std::string_view group) {
  const auto facts = model::facts(job, model::kUncountedCalls);
  return std::any_of(facts.begin(), facts.end(),
                     [group](const model::Fact* fact) { return fact->text("group") == group; });
}

/// The words of `doing` that identify it for a reader: the number of the call, its name, or what
/// the rank waits for.
std::string shown_words(const model::JobModel& job, const graph::Standing& standing) {
  const auto& call = standing.call;
  if (waits_in_call(standing) && call->sequence && *call->sequence > 0 &&
      !is_uncounted(job, call->group)) {
    return fmt::format("#{} of {}", *call->sequence, group_name(job, call->group));
  }
  if (waits_in_call(standing)) {
    return call->operation;
  }
  const std::string text = doing(job, standing);
  return text.substr(text.find(' ') + 1);
}

/// A rank that a log or a record names and of which no process was ever captured.
bool nothing_seen_of(const model::JobModel& job, const graph::Standing& standing) {
  return standing.activity == graph::Activity::kUnobserved ||
         (standing.activity == graph::Activity::kAbsent && model::latest(job) == nullptr);
}

/// Where this standing is already shown; nothing if its sentence contains more.
std::optional<Shown> shown_by(const model::JobModel& job, const graph::Standing& standing,
                              std::string_view more) {
  const bool framework = standing.thread != nullptr && model::is_framework_file(standing.user.file);
  if (!more.empty() || (framework && !graph::phase_of(standing.thread->frames).empty())) {
    return std::nullopt;
  }
  return Shown{
      .file = standing.user.file, .line = standing.user.line, .words = shown_words(job, standing)};
}

/// "is in barrier" of one rank with these ranks as subject: "ranks 0-2 are in barrier".
std::string with_subject(const model::RankSet& ranks, std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kVerbs{
      {{"is ", "are "}, {"has ", "have "}, {"was ", "were "}}};
  for (const auto& [one, many] : kVerbs) {
    if (ranks.size() > 1 && text.starts_with(one)) {
      text.replace(0, one.size(), many);
      break;
    }
  }
  constexpr std::string_view kOwnGpu = "for its GPU";
  if (const std::size_t at = text.find(kOwnGpu); ranks.size() > 1 && at != std::string::npos) {
    text.replace(at, kOwnGpu.size(), "for their GPUs");
  }
  return fmt::format("{} {}", said(ranks), text);
}

}  // namespace

std::string group_name(const model::JobModel& job, std::string_view group) {
  const model::ProcessGroup* known = model::group(job, group);
  const std::string name =
      known != nullptr && !known->name.empty() ? known->name : std::string(group);
  return name == "0" ? "default_pg" : name;
}

std::string thread_name(const model::Thread& thread) {
  if (thread.tid > 0) {
    return fmt::format("thread {}", thread.tid);
  }
  return thread.name.empty() ? "a thread" : "thread " + base::printable(thread.name);
}

std::string full_thread_name(const model::Thread& thread) {
  return thread.tid > 0 && !thread.name.empty()
             ? fmt::format("thread {} ({})", thread.tid, thread.name)
             : thread_name(thread);
}

std::string call_name(const model::JobModel& job, std::string_view operation,
                      std::string_view group, std::optional<std::int64_t> sequence) {
  const bool counted = !is_uncounted(job, group);
  const bool numbered = counted && sequence && *sequence > 0;
  std::string text(!operation.empty() ? operation : numbered ? "collective" : "a collective");
  if (numbered) {
    text += fmt::format(" #{}", *sequence);
  }
  // A group without a record or process is only assumed to be the world.
  const bool told = counted && (sequence || model::group(job, group) != nullptr);
  if (const std::string name = group_name(job, group); told && !name.empty()) {
    text += " of " + name;
  }
  return text;
}

std::string call_name(const model::JobModel& job, const graph::BlockedCall& call) {
  return call_name(job, call.operation, call.group, call.sequence);
}

std::string call_name(const model::JobModel& job, const model::CollectiveCall& call) {
  return call_name(job, call.operation, call.group, call.sequence);
}

std::string named_function(std::string_view function) {
  constexpr std::string_view kInside = ".<locals>.<";
  while (function.ends_with('>')) {
    const std::size_t at = function.rfind(kInside);
    if (at == std::string_view::npos ||
        function.find('>', at + kInside.size()) + 1 != function.size()) {
      break;
    }
    function = function.substr(0, at);
  }
  return std::string(function);
}

std::string line_of(const model::CallSite& site) {
  if (!site.known()) {
    return "line unknown";
  }
  std::string text(base::file_name(site.file));
  if (site.line > 0) {
    text += fmt::format(":{}", site.line);
  }
  return text;
}

std::string place(const model::CallSite& site) {
  std::string text = line_of(site);
  if (site.known() && !site.function.empty() && site.function != "<module>") {
    text += ", " + named_function(site.function);
  }
  return text;
}

std::string placed(const model::CallSite& site) {
  return site.known() ? fmt::format(" ({})", place(site)) : std::string();
}

std::string whereabouts(const model::JobModel& job, const graph::Standing& standing) {
  std::string text = doing(job, standing) + placed(standing.user);
  const bool framework = standing.thread != nullptr && model::is_framework_file(standing.user.file);
  const std::string_view phase =
      framework ? graph::phase_of(standing.thread->frames) : std::string_view();
  return phase.empty() ? text : fmt::format("{} (phase: {})", text, phase);
}

std::string whereabouts(const model::JobModel& job, const model::RankSet& ranks,
                        const graph::Standing& standing) {
  return with_subject(ranks, whereabouts(job, standing));
}

std::string waiting_here(const model::JobModel& job, const model::RankSet& ranks,
                         std::string_view what) {
  std::string text = ranks_do(ranks, "is waiting here", "are waiting here");
  if (!what.empty()) {
    text += fmt::format(", {}", what);
  }
  if (job.seconds_without_progress && *job.seconds_without_progress >= 1) {
    text += ", for " + base::duration(*job.seconds_without_progress);
  }
  return text;
}

std::string ranks_do(const model::RankSet& ranks, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", said(ranks), ranks.size() == 1 ? one : many);
}

std::string_view is_or_are(const model::RankSet& ranks) {
  return ranks.size() == 1 ? "is" : "are";
}

std::string_view has_or_have(const model::RankSet& ranks) {
  return ranks.size() == 1 ? "has" : "have";
}

std::string said(const model::RankSet& ranks) {
  if (ranks.empty()) {
    return "no rank";
  }
  if (std::string whole = ranks.said();
      whole.size() <= kLongestRanges + std::string_view("ranks ").size()) {
    return whole;
  }
  const std::vector<model::Rank>& all = ranks.values();
  const model::RankSet first(std::vector<model::Rank>(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kMostRanksListed)));
  return fmt::format("{} and {} others", first.said(), all.size() - kMostRanksListed);
}

Location location(const model::CallSite& site, const model::RankSet& ranks, std::string note) {
  Location result{.rank = std::nullopt,
                  .ranks = ranks,
                  .file = site.file,
                  .line = site.line,
                  .function = named_function(site.function),
                  .note = std::move(note),
                  .outcomes = {},
                  .module = std::string(base::file_name(site.module))};
  if (!ranks.empty()) {
    result.rank = ranks.front();
  }
  return result;
}

Location location(const graph::Standing& standing, std::string note) {
  return location(standing.user, model::RankSet({standing.rank}), std::move(note));
}

void add_whereabouts(Finding& finding, const graph::Examination& examination,
                     const model::RankSet& ranks) {
  struct Alike {
    std::string text;
    model::RankSet ranks;
    std::optional<Shown> shown;
  };
  std::vector<Alike> alike;  // ordered by their first rank
  for (const model::Rank rank : ranks) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing == nullptr || nothing_seen_of(examination.job, *standing)) {
      continue;
    }
    const std::string more = ahead_of_device(examination, *standing);
    const std::string text = whereabouts(examination.job, *standing) + more;
    const auto known = std::find_if(alike.begin(), alike.end(),
                                    [&text](const Alike& one) { return one.text == text; });
    if (known == alike.end()) {
      alike.push_back(
          {.text = text, .ranks = {rank}, .shown = shown_by(examination.job, *standing, more)});
    } else {
      known->ranks.insert(rank);
    }
  }
  model::RankSet left;
  for (std::size_t i = 0; i < alike.size(); ++i) {
    const auto& [text, of, shown] = alike[i];
    if (i >= kMostRanksListed) {
      left = left.united(of);
      continue;
    }
    finding.evidence.push_back({.rank = of.size() == 1 ? std::optional(of.front()) : std::nullopt,
                                .text = with_subject(of, text),
                                .shown = shown});
  }
  if (!left.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = ranks_do(left, "is at a different line", "are at different lines")});
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace ddpdoctor::detectors
