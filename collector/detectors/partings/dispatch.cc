// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/dispatch.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/detectors/partings/callback_lists.h"
#include "collector/detectors/partings/callee_origin.h"
#include "collector/detectors/partings/calls_at.h"
#include "collector/detectors/partings/wrapping_frames.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/unlike_environment.h"
#include "collector/graph/launched_call.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/origin/slicer.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Node;
using program::NodeKind;
using program::Origin;
using program::Source;

/// A frame of one side, the function that it calls, and the frames around it.
struct Step {
  const model::CallSite& at;
  const model::CallSite& next;
  Path callers;  // innermost first
};

/// The frames of one side from the fork inwards; the innermost one calls the collective.
std::vector<Step> steps_of(const Path& path, const Path& below) {
  std::vector<Step> out;
  for (std::size_t i = below.size(); i >= 1 && i < path.size(); --i) {
    out.push_back({.at = path[i],
                   .next = path[i - 1],
                   .callers = Path(path.begin() + static_cast<std::ptrdiff_t>(i) + 1, path.end())});
  }
  return out;
}

/// A branch between the called function and the collective depends on the rank's own data: ranks
/// that run the same function may have diverged there.
bool decides_below(const model::JobModel& job, const Path& below, std::size_t inner) {
  for (std::size_t i = 0; i < inner && i < below.size(); ++i) {
    const auto& lines = lines_of(job, below[i].file);
    const auto branches = program::deciding_branches(lines, below[i].line);
    if (std::any_of(branches.begin(), branches.end(), [&](const program::Block& block) {
          return !is_loop(block) && reads_own(job, lines, block);
        })) {
      return true;
    }
  }
  return false;
}

/// The definition of the function around a line.
model::CallSite defined_at(const model::JobModel& job, const model::CallSite& inside) {
  const program::SourceIndex& index = program::index_of(lines_of(job, inside.file));
  if (index.empty()) {
    return {};
  }
  return {.file = inside.file,
          .line = index.function_at(inside.line).header_line,
          .function = inside.function};
}

/// A function under the path by which its file is known: memory may show another one, by a link or
/// relative to a folder.
model::CallSite known_place(const model::JobModel& job, const model::CallSite& reached) {
  if (!reached.known() || lines_of(job, reached.file).contains(reached.line)) {
    return reached;
  }
  model::CallSite found;
  for (const auto& [path, lines] : job.sources) {
    if (base::file_name(path) == base::file_name(reached.file) && lines.contains(reached.line)) {
      if (found.known()) {
        return {};  // two files have that name
      }
      found = {.file = path, .line = reached.line, .function = reached.function};
    }
  }
  return found;
}

/// The function calls this collective in its own body.
bool makes(const model::JobModel& job, const model::CallSite& function,
           std::string_view operation) {
  const auto& lines = lines_of(job, function.file);
  const program::SourceIndex& index = program::index_of(lines);
  if (!function.known() || index.empty()) {
    return false;
  }
  const auto calls = program::calls_within(index.function_at(function.line).node);
  return std::any_of(calls.begin(), calls.end(), [&](Node call) {
    const std::string dotted = program::dotted_name(call.field(program::Field::kFunction));
    const graph::Operation* const made =
        dotted.empty() ? nullptr : graph::operation_called(lines, dotted);
    return made != nullptr && made->operation == operation;
  });
}

void put_choice(const model::JobModel& job, Dispatch& out) {
  const program::OriginStep* const chose = choosing_step(out.origin);
  if (chose == nullptr) {
    return;
  }
  const std::string& file = chose->file.empty() ? out.call.file : chose->file;
  out.chosen = {.file = file,
                .line = chose->line,
                .function = function_around(lines_of(job, file), chose->line)};
  out.chosen_by = chose->text;
}

/// What a call reached on these ranks, when it is one function there.
model::ReachedBy::Function on_side(const model::ReachedBy& reached, const model::RankSet& ranks) {
  for (const model::ReachedBy::Function& function : reached.functions) {
    if (!function.ranks.common(ranks).empty()) {
      return function.ranks.common(ranks) == ranks ? function : model::ReachedBy::Function{};
    }
  }
  return {};
}

enum class Read { kNothing, kSame, kDiffers, kDiffersNow };

/// Compares the functions that the call reached on both sides. Sets `out.instead`, and `out.runs`
/// if the call is in a loop over callbacks.
Read read_values(const model::JobModel& job, const Step& step, const model::RankSet& callers,
                 const model::RankSet& others, Node call, Dispatch& out) {
  const std::string callee = call.field(program::Field::kFunction).one_line();
  for (const model::ReachedBy& one :
       model::callees_at(job, step.at.file, step.at.line, callers.united(others))) {
    if (one.expression != callee) {
      continue;
    }
    const bool shared =
        std::any_of(one.functions.begin(), one.functions.end(), [&](const auto& function) {
          return !function.ranks.common(callers).empty() && !function.ranks.common(others).empty();
        });
    if (shared || differ_only_in_number(one)) {
      return one.stale ? Read::kNothing : Read::kSame;
    }
    const model::ReachedBy::Function instead = on_side(one, others);
    out.of_lists = instead.place.function.empty();  // a loop has no function of its own
    out.instead = out.of_lists ? instead.text : instead.place.function;
    out.other = known_place(job, instead.place);
    const std::string runs = on_side(one, callers).text;
    out.runs = out.of_lists && !runs.empty() ? runs : out.runs;
    return one.stale ? Read::kDiffersNow : Read::kDiffers;
  }
  return Read::kNothing;
}

/// The source does not determine the callee: not exactly one function has the called name, or the
/// callee is not an attribute.
bool may_be_several(const model::JobModel& job, Node call) {
  const Node callee = program::without_parentheses(call.field(program::Field::kFunction));
  if (!callee.is(NodeKind::kAttribute)) {
    return true;
  }
  const std::string_view name = callee.field(program::Field::kAttribute).text();
  std::size_t count = 0;
  for (const auto& [path, lines] : job.sources) {
    for (const program::Scope& scope : program::index_of(lines).scopes()) {
      count += scope.kind == program::ScopeKind::kFunction && scope.name == name ? 1 : 0;
    }
  }
  return count != 1;
}

std::string plain(std::string_view function) {
  const std::size_t local = function.rfind("<locals>.");
  return std::string(local == function.npos ? function : function.substr(local + 9));
}

/// The frame only calls a function that it was given, as functools.partial and functools.wraps do.
bool passes_on(const model::Frame& frame) {
  return frame.language != model::Language::kPython || frame.file.ends_with("/functools.py") ||
         only_wraps(frame);
}

/// By the source, the callee may be the function: `self.how(x)`, where a table gave it. What memory
/// shows of the call says more.
bool may_stand_for(const model::JobModel& job, const model::RankSet& ranks,
                   const model::CallSite& at, Node callee, const model::CallSite& next) {
  const auto read = model::callees_at(job, at.file, at.line, ranks);
  if (std::any_of(read.begin(), read.end(), [callee](const model::ReachedBy& one) {
        return one.expression == callee.one_line();
      })) {
    return false;
  }
  const auto& lines = lines_of(job, at.file);
  const program::Files files(lines, job.sources);
  const program::Where where = program::where_of(files.file_of(lines), callee);
  if (where.statement == program::kNone) {
    return false;
  }
  program::Slicer slicer(files, nullptr);
  const auto all = slicer.functions(callee, where);
  return std::any_of(all.begin(), all.end(), [&next](const program::Callable& one) {
    return one.file->path != nullptr && *one.file->path == next.file &&
           one.file->scopes()[one.scope].name == program::last_name(next.function);
  });
}

/// The line itself runs the function: no library between them chooses what to call. Without a stack
/// of it, the function has the name that is called, or the line works out what to call.
bool runs_directly(const model::JobModel& job, const Side& side, const model::CallSite& at,
                   const model::CallSite& next, Node call) {
  const auto is = [](const model::Frame& frame, const model::CallSite& site) {
    return frame.language == model::Language::kPython && frame.file == site.file &&
           frame.line == site.line;
  };
  const model::Thread* const thread = side.standing == nullptr ? nullptr : side.standing->thread;
  const auto frames = thread == nullptr ? std::vector<model::Frame>() : thread->frames;
  for (auto inner = frames.begin(); inner != frames.end(); ++inner) {
    if (!is(*inner, next)) {
      continue;
    }
    const auto outer = std::find_if_not(std::next(inner), frames.end(), passes_on);
    if (outer != frames.end()) {
      return is(*outer, at);
    }
  }
  const Node callee = program::without_parentheses(call.field(program::Field::kFunction));
  if (callee.is(NodeKind::kCall) || callee.is(NodeKind::kSubscript)) {
    return true;
  }
  const std::string_view name = callee.is(NodeKind::kAttribute)
                                    ? callee.field(program::Field::kAttribute).text()
                                    : callee.text();
  return name == program::last_name(next.function) ||
         may_stand_for(job, side.ranks, at, callee, next);
}

/// The memory of these ranks shows that the call reaches the function: no library chooses it.
bool is_read_as_callee(const model::JobModel& job, const Step& step, const model::RankSet& ranks,
                       Node call) {
  const std::string callee = call.field(program::Field::kFunction).one_line();
  for (const model::ReachedBy& one : model::callees_at(job, step.at.file, step.at.line, ranks)) {
    const model::CallSite reached = known_place(job, on_side(one, ranks).place);
    if (one.expression == callee && reached.file == step.next.file &&
        program::last_name(reached.function) == program::last_name(step.next.function)) {
      return true;
    }
  }
  return false;
}

/// One of these ranks is in this function.
bool any_rank_is_in(const graph::Examination& examination, const model::RankSet& ranks,
                    const model::CallSite& function) {
  return std::any_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const graph::Standing* const standing = examination.standing(rank);
    return standing != nullptr && std::any_of(standing->callers.begin(), standing->callers.end(),
                                              [&function](const model::CallSite& site) {
                                                return same_function(site, function);
                                              });
  });
}

struct Asking {
  const graph::Examination& examination;
  const Parting& parting;
  const Fork& fork;
  bool through_library = false;  // the others' memory does not show what these lines reach
};

std::optional<Dispatch> dispatch_at(const Asking& asking, const Step& step, bool ours,
                                    std::size_t inner) {
  const model::JobModel& job = asking.examination.job;
  const Parting& parting = asking.parting;
  const Side& caller = ours ? parting.odd : parting.rest;
  const Side& other = ours ? parting.rest : parting.odd;
  const Path& below = ours ? asking.fork.below_ours : asking.fork.below_theirs;
  const Path& across = ours ? asking.fork.below_theirs : asking.fork.below_ours;
  const Node call = call_to(job, step.at, step.next);
  if (!call || !(runs_directly(job, caller, step.at, step.next, call) ||
                 is_read_as_callee(job, step, caller.ranks, call))) {
    return std::nullopt;
  }
  Dispatch out{.call = step.at,
               .callee = call.field(program::Field::kFunction).one_line(),
               .runs = plain(step.next.function),
               .instead = {},
               .of_lists = false,
               .of_odd = ours};
  const Read read = read_values(job, step, caller.ranks, other.ranks, call, out);
  out.by_value = read == Read::kDiffers;
  out.by_stack = inner == below.size() && graph::same_line(asking.fork.ours, asking.fork.theirs) &&
                 !across.empty() && !same_function(step.next, across.back()) &&
                 call_to(job, step.at, across.back()) == call &&
                 !any_rank_is_in(asking.examination, other.ranks, step.next) &&
                 runs_directly(job, other, step.at, across.back(), call);
  if (read == Read::kSame && !out.by_stack) {
    return std::nullopt;
  }
  if (out.by_stack) {
    out.instead = plain(across.back().function);
    out.other = defined_at(job, across.back());
  }
  const bool same_call = caller.operation == other.operation && !parting.recorded;
  if ((same_call && !out.by_value) || makes(job, out.other, caller.operation)) {
    return std::nullopt;
  }
  out.origin = origin_of_callee(job, step.at, step.callers, call);
  // If memory was read and this call was not, its source alone proves nothing.
  const bool readable = model::facts(job, model::kValueFact).empty() || read == Read::kDiffersNow ||
                        asking.through_library;
  const bool of_rank = out.origin.source == Source::kRank && readable &&
                       may_be_several(job, call) && !decides_below(job, below, inner);
  const bool of_own = program::is_own(out.origin.source) && read == Read::kDiffersNow;
  const bool of_environment = !unlike_variable(job, out.origin).empty();
  if (!out.by_value && !out.by_stack && !of_rank && !of_own && !of_environment) {
    return std::nullopt;
  }
  put_choice(job, out);
  return out;
}

}  // namespace

std::optional<Dispatch> dispatch_of(const graph::Examination& examination, const Parting& parting,
                                    const Fork& fork) {
  for (const bool ours : {true, false}) {
    Asking asking{.examination = examination, .parting = parting, .fork = fork};
    const Side& side = ours ? parting.odd : parting.rest;
    if (!side.calls()) {
      continue;
    }
    const Path& below = ours ? fork.below_ours : fork.below_theirs;
    std::size_t inner = below.size();
    for (const Step& step : steps_of(side.path, below)) {
      if (auto found = dispatch_at(asking, step, ours, inner)) {
        return found;
      }
      const Node call = call_to(examination.job, step.at, step.next);
      asking.through_library = asking.through_library || !call ||
                               !runs_directly(examination.job, side, step.at, step.next, call);
      --inner;
    }
  }
  return std::nullopt;
}

bool read_dispatch(const graph::Examination& examination, Explanation& explanation,
                   ChosenBy chosen_by) {
  auto dispatch = dispatch_of(examination, explanation.parting, *explanation.fork);
  if (!dispatch) {
    return false;
  }
  const bool rank = dispatch->origin.source == Source::kRank;
  const bool seen = dispatch->by_value || dispatch->by_stack;
  if (chosen_by == ChosenBy::kRank && !(rank && seen)) {
    return false;
  }
  explanation.branch =
      Branch{.where = dispatch->chosen,
             .condition = dispatch->chosen_by,
             .on = rank ? program::Dependence::kRank : program::Dependence::kData,
             .leads_to_ours = dispatch->of_odd,
             .guarded = dispatch->call,
             .unproven = !seen || is_unproven(dispatch->origin) || !dispatch->chosen.known()};
  explanation.dispatch = std::make_shared<const Dispatch>(std::move(*dispatch));
  if (explanation.parting.tie && !explanation.branch->leads_to_ours) {
    explanation.turn();
  }
  explanation.cause = rank ? Cause::kRankConditional : Cause::kDivergent;
  return true;
}

}  // namespace ddpdoctor::detectors
