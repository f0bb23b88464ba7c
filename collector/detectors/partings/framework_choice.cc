// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/framework_choice.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/detectors/partings/framework_paths.h"
#include "collector/detectors/partings/framework_place.h"
#include "collector/detectors/partings/habits.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/model/call_frames.h"
#include "collector/model/questions.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;
using program::Block;

/// A condition of a framework that led one side to its call, and the user's line behind it.
struct Choice {
  bool ours = true;
  Test test;
  program::Origin origin;
  std::optional<program::OriginStep> users;
  bool narrowed = false;    // it comes after a call that all ranks made
  bool calls_user = false;  // it led the framework to the user's code, which made the call

  [[nodiscard]] bool is_own() const {
    return program::is_own(origin.source) && !origin.like_an_option;
  }
};

/// The user's line that the framework's value comes from first, or the condition under which that
/// line runs; nullopt if there is none.
std::optional<program::OriginStep> users_step(const program::Origin& origin) {
  const auto is_users = [](const program::OriginStep& step) {
    return model::is_user_file(step.file);
  };
  const auto found = std::find_if(origin.chain.begin(), origin.chain.end(), is_users);
  if (found == origin.chain.end()) {
    return std::nullopt;
  }
  const auto next = std::next(found);
  const bool guarded =
      !found->chooses && next != origin.chain.end() && next->chooses && is_users(*next);
  return guarded ? *next : *found;
}

/// "torch.optim.AdamW(net.parameters())": an object of a library's class. Every rank makes it, and
/// what a framework reads from it, the rank did not decide in this line.
bool makes_object_of_library(const model::JobModel& job, std::string_view text) {
  text = base::trim(text);
  const auto calls = program::calls_in(text);
  const auto whole = std::find_if(calls.begin(), calls.end(), [text](const program::Call& call) {
    return call.begin == 0 && call.end == text.size();
  });
  const std::string_view name =
      whole == calls.end() ? std::string_view() : program::last_name(whole->callee);
  if (name.empty() || std::isupper(static_cast<unsigned char>(name.front())) == 0) {
    return false;
  }
  return std::none_of(job.sources.begin(), job.sources.end(), [name](const auto& source) {
    return model::is_user_file(source.first) &&
           program::facts_of(source.second).classes.contains(name);
  });
}

void add_choice_of(const model::JobModel& job, Test test, program::Origin origin, bool ours,
                   bool narrowed, bool calls_user, std::vector<Choice>& out) {
  if (dependence_of(origin) != program::Dependence::kNone) {
    auto users = users_step(origin);
    if (users && makes_object_of_library(job, users->text)) {
      users.reset();
    }
    out.push_back({.ours = ours,
                   .test = std::move(test),
                   .origin = std::move(origin),
                   .users = std::move(users),
                   .narrowed = narrowed,
                   .calls_user = calls_user});
  }
}

/// Those of `of` that do not decide the other line as well.
std::vector<Block> only_there(std::vector<Block> of, const std::vector<Block>& other) {
  std::erase_if(of, [&other](const Block& block) {
    return std::any_of(other.begin(), other.end(), [&block](const Block& one) {
      return one.line == block.line && one.kind == block.kind;
    });
  });
  return of;
}

/// One side's way from the place up to which all ranks came together.
struct Way {
  Path path;                    // innermost first
  std::size_t begins = 0;       // index of the frame of that place
  std::optional<int> together;  // the line there that all ranks passed
  bool narrowed = false;        // the place is that of a call which all ranks made
};

/// The way after a call that all ranks made: what led to it led all of them there.
void narrow(Way& way, const Path& made) {
  std::size_t depth = 0;
  while (depth < std::min(way.path.size(), made.size()) &&
         graph::same_line(way.path[way.path.size() - 1 - depth], made[made.size() - 1 - depth])) {
    ++depth;
  }
  if (depth == way.path.size() || depth >= made.size()) {
    return;
  }
  const std::size_t frame = way.path.size() - 1 - depth;
  const model::CallSite& last = made[made.size() - 1 - depth];
  if (!same_function(way.path[frame], last) || frame > way.begins) {
    return;
  }
  if (frame < way.begins) {
    way.together.reset();
  }
  way.begins = frame;
  way.narrowed = true;
  if (last.line < way.path[frame].line) {  // else the loop around them began again
    way.together = last.line;
  }
}

/// A recording keeps only the innermost frames of a call. If the function of its outermost one is
/// still on the stack, the frames around it are those of the call, too.
void add_outer_frames(const Path& stack, Path& made) {
  const auto same = std::find_if(stack.begin(), stack.end(), [&made](const model::CallSite& site) {
    return same_function(site, made.back());
  });
  if (same != stack.end()) {
    made.insert(made.end(), std::next(same), stack.end());
  }
}

/// The frames of the call before this one, which the ranks of both sides made; empty if unknown.
/// `odd_way` and `rest_way`: those of the sides.
Path last_common_call(const Examination& examination, const Parting& parting, const Path& odd_way,
                      const Path& rest_way) {
  if (!parting.sequence || parting.odd.ranks.empty() || parting.rest.ranks.empty()) {
    return {};
  }
  const auto frames = [&](const Side& side) {
    return model::frames_of_call(examination.job, side.ranks.front(), parting.group,
                                 *parting.sequence - 1);
  };
  Path made = frames(parting.odd);
  if (made.empty() || !same_path(made, frames(parting.rest))) {
    return {};
  }
  for (const Path* way : {&odd_way, &rest_way}) {
    if (!graph::same_line(made.back(), way->back())) {
      add_outer_frames(*way, made);
    }
  }
  return made;
}

/// The conditions on a way, outermost first.
void add_way(const model::JobModel& job, const Way& way, bool ours, std::vector<Choice>& out) {
  for (std::size_t i = way.begins + 1; i-- > 0;) {
    const model::CallSite& site = way.path[i];
    if (!model::is_framework_file(site.file)) {
      continue;
    }
    const program::SourceText& lines = lines_of(job, site.file);
    auto blocks = program::deciding_branches(lines, site.line);
    if (i == way.begins && way.together) {
      blocks = only_there(std::move(blocks), program::deciding_branches(lines, *way.together));
    }
    const Path callers(way.path.begin() + static_cast<std::ptrdiff_t>(i) + 1, way.path.end());
    for (const Block& block : blocks) {
      if (block.kind != program::BlockKind::kFor && !block.condition.empty()) {
        model::CallSite where = site;
        where.line = block.line;
        add_choice_of(job, {.where = std::move(where), .condition = block.condition},
                      origin_of(job, lines, block, callers), ours, way.narrowed,
                      i > 0 && model::is_user_file(way.path.front().file), out);
      }
    }
  }
}

std::vector<Choice> choices_on_the_way(const model::JobModel& job, const Path& odd,
                                       const Path& rest, const Fork& fork, const Path& made) {
  Way ours = {.path = odd, .begins = fork.below_ours.size(), .together = fork.theirs.line};
  Way theirs = {.path = rest, .begins = fork.below_theirs.size(), .together = fork.ours.line};
  narrow(ours, made);
  narrow(theirs, made);
  std::vector<Choice> out;
  add_way(job, ours, true, out);
  add_way(job, theirs, false, out);
  if (const auto loop = left_loop(job, fork); loop && loop->way_out) {
    add_choice_of(job, {.where = loop->way_out->where, .condition = loop->way_out->condition},
                  origin_of(job, *loop->way_out), loop->ours_left, false, false, out);
  }
  return out;
}

/// The user's condition, or the value that the user's line assigns, as the branch that decides; the
/// framework's own condition if no line of the user's is behind it.
Branch branch_of_choice(const model::JobModel& job, const Choice& choice) {
  const model::CallSite& there = choice.test.where;
  model::CallSite site = there;
  Block block = {.line = there.line, .text = {}, .condition = choice.test.condition};
  if (choice.users) {
    const program::SourceText& lines = lines_of(job, choice.users->file);
    site = {.file = choice.users->file,
            .line = choice.users->line,
            .function = function_around(lines, choice.users->line)};
    block = {.line = site.line, .text = {}, .condition = choice.users->text};
    if (!choice.users->chooses) {
      for (const auto& [name, set] : program::facts_of(lines).attributes) {
        if (set.binding.line == site.line && set.binding.value) {
          block.condition = set.binding.value.one_line();
        }
      }
    }
  }
  Branch branch = branch_of(block, site, dependence_of(choice.origin), choice.ours);
  branch.unproven =
      !choice.users || is_unproven(choice.origin);  // other conditions lead there, too
  return branch;
}

/// After a call that all ranks made, the first choice of a rank's own. Without such a call, much of
/// a framework reads files or the environment: only what the user's code decides counts, or a test
/// of the rank before a call of the user's code, such as a plugin that writes on rank 0.
const Choice* best_of(const std::vector<Choice>& choices, Decided by) {
  const auto first = [&choices](const auto& wanted) {
    const auto found = std::find_if(choices.begin(), choices.end(), wanted);
    return found == choices.end() ? nullptr : &*found;
  };
  const Choice* best = first([](const Choice& one) { return one.narrowed && one.is_own(); });
  if (best == nullptr) {
    best = first([](const Choice& one) {
      const bool ranks = one.calls_user && one.origin.source == program::Source::kRank;
      return ranks || (one.is_own() && one.users.has_value());
    });
  }
  return best != nullptr || by == Decided::kOwn
             ? best
             : first([](const Choice& one) { return one.users.has_value(); });
}

/// Other conditions in the function that may have decided.
void add_alternatives(const std::vector<Choice>& choices, const Choice& chosen, Branch& branch) {
  constexpr std::size_t kMost = 2;
  for (const Choice& one : choices) {
    const bool beside = &one != &chosen && one.ours == chosen.ours && !one.origin.like_an_option &&
                        one.test.where.line != chosen.test.where.line &&
                        same_function(one.test.where, chosen.test.where);
    if (beside && branch.or_else.size() < kMost) {
      branch.or_else.push_back(one.test);
      branch.unproven = true;
    }
  }
}

/// The call to which the choice led came after the others' backward in earlier steps, too: not the
/// choice is new, but that its ranks reduced no gradients before it.
bool is_in_turn(const graph::Examination& examination, Parting parting, const Choice& chosen) {
  if (!chosen.ours) {
    parting.turn();
  }
  return in_backward(examination, parting.rest) && !in_backward(examination, parting.odd) &&
         left_out_by_rhythm(examination, parting);
}

/// The frames of a side at the divergence: of its stack, or of the call at which the ranks diverged
/// if they have gone on since.
Path way_to(const model::JobModel& job, const Parting& parting, const Side& side) {
  if (!parting.shifted) {
    return whole_path(job, side);
  }
  return parting.sequence && !side.ranks.empty()
             ? model::frames_of_call(job, side.ranks.front(), parting.group, *parting.sequence)
             : Path();
}

}  // namespace

bool read_framework_choice(const Examination& examination, Explanation& explanation, Decided by) {
  const Parting& parting = explanation.parting;
  if (examination.job.framework_sources.empty()) {
    return false;
  }
  const Path odd = way_to(examination.job, parting, parting.odd);
  const Path rest = way_to(examination.job, parting, parting.rest);
  const auto fork = fork_of(odd, rest);
  const model::JobModel& job = with_frameworks(examination);
  if (!fork || !model::is_framework_file(fork->ours.file) ||
      lines_of(job, fork->ours.file).empty()) {
    return false;
  }
  const std::vector<Choice> choices =
      choices_on_the_way(job, odd, rest, *fork, last_common_call(examination, parting, odd, rest));
  const Choice* const chosen = best_of(choices, by);
  if (chosen == nullptr || is_in_turn(examination, parting, *chosen)) {
    return false;
  }
  if (!chosen->users) {
    place_in_framework(explanation);
  }
  if (!chosen->ours && parting.tie) {  // of two, the one that something led to a call is odd
    explanation.turn();
  }
  explanation.branch = branch_of_choice(job, *chosen);
  add_alternatives(choices, *chosen, *explanation.branch);
  explanation.branch->leads_to_ours = chosen->ours || explanation.parting.tie;
  explanation.cause =
      chosen->origin.source == program::Source::kRank ? Cause::kRankConditional : Cause::kDivergent;
  return true;
}

}  // namespace ddpdoctor::detectors
