// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unseen_decision.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/activity_rules.h"
#include "collector/graph/launched_call.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/branches.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::SourceText;

constexpr int kDeepest = 3;                 // calls from the function on the stack
constexpr std::size_t kMostLines = 20'000;  // read for one answer

/// In a group of its own, of which only some ranks may be members: these alone have to come.
bool names_a_group(const program::Call& call) {
  return !program::keyword_argument(call, "group").empty();
}

/// Follows the calls of a function and keeps the decisions that lead to a collective.
class Search {
 public:
  Search(const model::JobModel& job, const model::CallSite& standing)
      : job_(job), standing_(standing) {}

  void read_function(const std::string& file, const SourceText& lines, int line,
                     const std::vector<UnseenDecision>& above, int depth) {
    const auto extent = program::function_extent(lines, line);
    const int first = extent ? extent->first : lines.begin()->first;
    const int last = extent ? extent->second : lines.rbegin()->first;
    if (!seen_.emplace(file, first).second) {
      return;
    }
    for (auto at = lines.lower_bound(first); at != lines.end() && at->first <= last; ++at) {
      if (++read_ > kMostLines) {
        return;
      }
      const bool own = program::function_extent(lines, at->first) == extent;
      if (own && (depth > 0 || is_behind(lines, at->first, line))) {
        read_line(file, lines, at->first, at->second, above, depth);
      }
    }
  }

  [[nodiscard]] const std::map<std::pair<std::string, int>, UnseenDecision>& found() const {
    return found_;
  }

 private:
  /// Whoever is at `now` may have been at `line` before.
  static bool is_behind(const SourceText& lines, int line, int now) {
    const auto around = program::enclosing(lines, now);
    return line <= now || std::any_of(around.begin(), around.end(), [&](const auto& block) {
             return is_loop(block) && encloses(lines, block, line);
           });
  }

  void read_line(const std::string& file, const SourceText& lines, int line, std::string_view text,
                 const std::vector<UnseenDecision>& above, int depth) {
    for (const program::Call& call : program::calls_in(text)) {
      const graph::Operation* operation = graph::operation_called(lines, call.callee);
      const auto known = operation == nullptr ? functions_named(lines, call.callee)
                                              : std::vector<std::pair<std::string, int>>{};
      if (operation == nullptr ? known.size() != 1 || depth == kDeepest : names_a_group(call)) {
        continue;
      }
      std::vector<UnseenDecision> decisions = above;
      add_decisions(file, lines, line, decisions);
      if (operation != nullptr) {
        keep({.file = file, .line = line, .function = function_around(lines, line)}, *operation,
             decisions);
      } else {
        const auto& [other, defined] = known.front();
        read_function(other, lines_of(job_, other), defined, decisions, depth + 1);
      }
    }
  }

  /// Functions of the user's files that a callee may be; its own file's first.
  std::vector<std::pair<std::string, int>> functions_named(const SourceText& lines,
                                                           std::string_view callee) const {
    const std::string name(program::last_name(callee));
    std::vector<std::pair<std::string, int>> out;
    for (const auto& [file, text] : job_.sources) {
      if (!model::is_user_file(file) || (!out.empty() && &text != &lines)) {
        continue;
      }
      const program::FileFacts& facts = program::facts_of(text);
      for (auto [at, end] = facts.functions.equal_range(name); at != end; ++at) {
        out.emplace_back(file, facts.index->scopes()[at->second].last_line);
      }
    }
    return out;
  }

  void add_decisions(const std::string& file, const SourceText& lines, int line,
                     std::vector<UnseenDecision>& decisions) const {
    const auto common = file == standing_.file ? program::branches_to(lines, standing_.line)
                                               : std::vector<program::Branching>{};
    for (const program::Branching& one : program::branches_to(lines, line)) {
      const bool leads_here = std::any_of(common.begin(), common.end(), [&one](const auto& other) {
        return other.block.line == one.block.line;
      });
      if (one.loop || is_loop(one.block) || one.block.condition.empty() || leads_here) {
        continue;
      }
      const program::Origin origin = origin_of(job_, lines, one.block);
      if (origin.source != program::Source::kRank && !program::is_own(origin.source)) {
        continue;
      }
      const model::CallSite at{
          .file = file, .line = line, .function = function_around(lines, line)};
      decisions.push_back({.branch = branch_of(one.block, at, dependence_of(origin), true),
                           .operation = {},
                           .inside = encloses(lines, one.block, line),
                           .source = origin.source,
                           .standing = standing_});
    }
  }

  void keep(const model::CallSite& call, const graph::Operation& operation,
            const std::vector<UnseenDecision>& decisions) {
    if (decisions.empty() || (call.file == standing_.file && call.line == standing_.line)) {
      return;
    }
    UnseenDecision one = decisions.front();  // the outermost: what is inside it comes after it
    one.branch.guarded = call;
    one.operation = std::string(operation.operation);
    found_.emplace(std::pair(one.branch.where.file, one.branch.where.line), std::move(one));
  }

  const model::JobModel& job_;
  const model::CallSite& standing_;
  std::set<std::pair<std::string, int>> seen_;
  std::map<std::pair<std::string, int>, UnseenDecision> found_;
  std::size_t read_ = 0;
};

}  // namespace

const graph::Standing* common_standing(const graph::Examination& examination) {
  const auto& all = examination.standings;
  const bool known = all.size() > 1 && examination.history.empty() && may_hang(examination) &&
                     !examination.job.ended && waiting_ranks(examination).size() == all.size();
  const bool one_line =
      known && std::all_of(all.begin(), all.end(), [&all](const graph::Standing& one) {
        return one.user.known() && graph::same_line(one.user, all.front().user) &&
               one.thread != nullptr;
      });
  return one_line ? &all.front() : nullptr;
}

std::optional<UnseenDecision> unseen_decision(const graph::Examination& examination) {
  const graph::Standing* standing = common_standing(examination);
  if (standing == nullptr) {
    return std::nullopt;
  }
  Search search(examination.job, standing->user);
  for (const model::CallSite& site : standing->callers) {
    const SourceText& lines = lines_of(examination.job, site.file);
    if (!lines.empty()) {
      search.read_function(site.file, lines, site.line, {}, 0);
    }
  }
  return search.found().size() == 1 ? std::optional(search.found().begin()->second) : std::nullopt;
}

Finding finding_of(const graph::Examination& examination, const UnseenDecision& decision,
                   std::string kind) {
  const Branch& branch = decision.branch;
  Finding finding;
  finding.kind = std::move(kind);
  finding.confidence = Confidence::kPossible;
  const model::RankSet all = waiting_ranks(examination);
  for (const model::Rank rank : all) {
    if (holds_for(branch.condition, rank) == decision.inside) {
      finding.culprits.insert(rank);
    }
  }
  finding.waiting = all.minus(finding.culprits);
  const std::string condition = "`" + base::elide(branch.condition, 80) + "`";
  finding.summary = fmt::format(
      "{} may have called {} ({}) under {} ({}), which depends on {}; all ranks wait in one line",
      finding.culprits.empty() ? "some ranks" : said(finding.culprits), decision.operation,
      line_of(branch.guarded), condition, line_of(branch.where), program::name_of(decision.source));
  finding.fix = fmt::format(
      "Call {} on every rank, or all_reduce the value of {} first. Start the job with `ddpdoctor "
      "run -- …` to record which rank called what.",
      decision.operation, condition);
  finding.locations.push_back(
      location(branch.guarded, finding.culprits, "some ranks may have called this"));
  finding.locations.push_back(location(branch.where, {}, "may decide which ranks call it"));
  finding.locations.push_back(
      location(decision.standing, finding.waiting, "all ranks are waiting here"));
  return finding;
}

}  // namespace ddpdoctor::detectors
