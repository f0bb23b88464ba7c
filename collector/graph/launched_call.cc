// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/launched_call.h"

#include <algorithm>
#include <utility>

#include "collector/graph/blocked_call.h"
#include "collector/graph/device_waits.h"
#include "collector/graph/history.h"
#include "collector/graph/wrapped_forward.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/origin/callees.h"
#include "collector/program/origin/objects.h"
#include "collector/program/questions/code.h"
#include "collector/program/questions/passed.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::graph {
namespace {

using program::Node;
using program::SourceText;

constexpr int kDeepest = 3;  // depth of calls below the function on the stack

/// What the source shows about one call.
struct Made {
  std::string operation;
  std::vector<model::CallSite> callers;
  bool of_job = true;  // false: of a group that the program made
  Node made_group{};   // the call that made it, if it is known
  bool unrecorded = false;
};

/// `group=…`
Node group_argument(Node call) {
  for (const Node argument : call.field(program::Field::kArguments).children()) {
    if (argument.is(program::NodeKind::kKeywordArgument) &&
        argument.field(program::Field::kName).text() == "group") {
      return argument.field(program::Field::kValue);
    }
  }
  return {};
}

enum class Wanted : std::uint8_t { kAny, kBackward };

class Reader {
 public:
  Reader(const model::JobModel& job, Wanted wanted)
      : files_(job.sources.begin()->second, job.sources),
        forwards_(files_),
        ddp_(wraps_in_ddp(job)),
        wanted_(wanted) {}

  /// The collective that a call makes, directly or inside a user's function.
  std::optional<Made> made_by(const std::string& file, const SourceText& lines, Node call,
                              int depth) const {
    const std::string callee = program::dotted_name(call.field(program::Field::kFunction));
    const std::string name(
        program::last_of(callee.empty() ? call.field(program::Field::kFunction).text() : callee));
    const model::CallSite here{
        .file = file,
        .line = call.line(),
        .function = program::index_of(lines).function_at(call.line()).qualified};
    const Operation* operation =
        wanted_ == Wanted::kAny ? operation_called(lines, callee) : nullptr;
    if (operation != nullptr) {
      const Node group = group_argument(call);
      return Made{.operation = std::string(operation->operation),
                  .callers = {here},
                  .of_job = !group,
                  .made_group = group ? new_group_of(lines, group) : Node(),
                  .unrecorded = operation->unrecorded};
    }
    if ((ddp_ || wanted_ == Wanted::kBackward) && name == "backward") {
      return Made{.operation = "all_reduce", .callers = {here}};
    }
    if (const auto forward =
            ddp_ && wanted_ == Wanted::kAny ? forward_of(lines, call) : std::nullopt) {
      return Made{.operation = forward->operation, .callers = {here}};
    }
    const auto known = depth < kDeepest ? function_called(lines, call) : std::nullopt;
    auto inside = known ? made_in(*known, depth + 1) : std::nullopt;
    if (inside) {
      inside->callers.push_back(here);
    }
    return inside;
  }

 private:
  /// DDP's forward, if it broadcasts buffers.
  [[nodiscard]] std::optional<WrappedForward> forward_of(const SourceText& lines, Node call) const {
    const program::File& file = files_.file_of(lines);
    const program::Where where = program::where_of(file, call);
    auto forward = where.statement == program::kNone
                       ? std::nullopt
                       : forwards_.of(call.field(program::Field::kFunction), file, where.scope);
    return forward && !forward->unshards ? std::move(forward) : std::nullopt;
  }

  /// The new_group() whose result an expression stands for.
  [[nodiscard]] Node new_group_of(const SourceText& lines, Node expression) const {
    const program::File& file = files_.file_of(lines);
    const program::Where where = program::where_of(file, expression);
    if (where.statement == program::kNone) {
      return {};
    }
    const program::Object group = program::Objects(files_).of(expression, file, where.scope);
    const program::CallRow* const row = program::call_of_name(group.qualified);
    return row != nullptr && row->name == "new_group" ? group.made : Node();
  }

  struct Function {
    const std::string* file = nullptr;
    const SourceText* lines = nullptr;
    Node body;
  };

  /// The only function that a call can mean.
  std::optional<Function> function_called(const SourceText& lines, Node call) const {
    const program::Where where = program::where_of(files_.file_of(lines), call);
    if (where.statement == program::kNone) {
      return std::nullopt;
    }
    program::Slicer slicer(files_, nullptr);
    const auto found = program::callees_of(call, where, slicer);
    if (found.size() != 1 || found[0].file->path == nullptr ||
        !model::is_user_file(*found[0].file->path)) {
      return std::nullopt;
    }
    return Function{.file = found[0].file->path,
                    .lines = found[0].file->text,
                    .body = found[0].function().body};
  }

  /// The last collective in the body of a function.
  std::optional<Made> made_in(const Function& function, int depth) const {
    std::optional<Made> last;
    std::vector<Node> open{function.body};
    std::vector<Node> calls;
    while (!open.empty()) {
      const Node node = open.back();
      open.pop_back();
      if (node.is(program::NodeKind::kCall)) {
        calls.push_back(node);
      }
      for (Node child = node.first_child(); child; child = child.next_sibling()) {
        open.push_back(child);
      }
    }
    std::sort(calls.begin(), calls.end(), [](Node a, Node b) { return a.end() > b.end(); });
    for (const Node call : calls) {
      last = made_by(*function.file, *function.lines, call, depth);
      if (last) {
        return last;
      }
    }
    return std::nullopt;
  }

  program::Files files_;
  WrappedForwards forwards_;
  bool ddp_;
  Wanted wanted_;
};

bool stays_behind_device(const Standing& one) {
  return one.activity == Activity::kGpu && one.thread != nullptr && !one.moved && !one.on_cpu;
}

/// How many of a rank's frames, innermost first, are below the last line that both ranks have
/// passed, including the function of that line.
std::size_t frames_parted(const std::vector<model::CallSite>& one,
                          const std::vector<model::CallSite>& other) {
  const std::size_t common = std::min(one.size(), other.size());
  for (std::size_t depth = 0; depth < common; ++depth) {
    const model::CallSite& a = one[one.size() - 1 - depth];
    const model::CallSite& b = other[other.size() - 1 - depth];
    if (a.file != b.file || a.function != b.function || a.line != b.line) {
      return one.size() - depth;
    }
  }
  return one.size() - common;
}

/// In a call of the job, waiting for a device, or finished: a rank that works may only be late.
bool waits_or_has_ended(const Standing& one) {
  return stays_behind_device(one) || (one.waits_for_ranks() && !one.moved) ||
         one.activity == Activity::kExited;
}

/// A recorder was read on this rank, and everything in it has ended.
bool all_calls_are_over(const History& history, model::Rank rank) {
  const auto over = [](const Calls& calls) {
    return std::all_of(calls.begin(), calls.end(),
                       [](const auto* call) { return model::is_over(call->state); });
  };
  return history.was_read(rank) && over(history.point_to_point(rank)) &&
         std::all_of(history.lanes(rank).begin(), history.lanes(rank).end(),
                     [&over](const Calls* calls) { return over(*calls); });
}

/// Another rank is in exactly this call, and this rank may have skipped it.
bool may_have_missed(const LaunchedCall& launched, const Standing& one,
                     const std::vector<Standing>& all) {
  return launched.maybe && std::any_of(all.begin(), all.end(), [&](const Standing& other) {
           return other.rank != one.rank && other.user == launched.callers.front();
         });
}

/// The maximum over all other ranks; a rank at the line at which the others made the call has
/// reached it again.
std::size_t frames_parted(const Standing& one, const std::vector<Standing>& all) {
  std::size_t most = 1;
  for (const Standing& other : all) {
    if (other.rank != one.rank) {
      most = std::max(most, frames_parted(one.callers, other.callers));
    }
  }
  return most;
}

/// By an import of the class, or by a call through a module:
/// `nn.parallel.DistributedDataParallel(`.
bool names_ddp(const program::FileFacts& facts) {
  const auto [begin, end] = facts.calls.equal_range("DistributedDataParallel");
  const auto is_qualified = [&facts](const auto& one) {
    const std::string callee =
        program::dotted_name(one.second.call.field(program::Field::kFunction));
    const std::size_t dot = callee.find('.');
    const auto head = facts.imports.find(callee.substr(0, dot));
    return head != facts.imports.end() && dot != std::string::npos &&
           program::is_ddp(head->second + callee.substr(dot));
  };
  return std::any_of(facts.imports.begin(), facts.imports.end(),
                     [](const auto& one) { return program::is_ddp(one.second); }) ||
         std::any_of(begin, end, is_qualified);
}

std::optional<LaunchedCall> last_launch(const model::JobModel& job,
                                        const std::vector<model::CallSite>& callers,
                                        std::size_t frames, bool here, Wanted wanted) {
  if (job.sources.empty()) {
    return std::nullopt;
  }
  const Reader reader(job, wanted);
  for (std::size_t i = 0; i < std::min(frames, callers.size()); ++i) {
    const auto source = job.sources.find(callers[i].file);
    if (source == job.sources.end()) {
      return std::nullopt;
    }
    const SourceText& lines = source->second;
    const auto makes = [&](Node call) {
      return reader.made_by(source->first, lines, call, 0).has_value();
    };
    const program::PassedCalls passed =
        program::last_passed(lines, callers[i].line, here && i == 0, makes);
    if (passed.calls.empty()) {
      continue;  // the caller's own path here
    }
    auto made = passed.calls.size() == 1 ? reader.made_by(source->first, lines, passed.calls[0], 0)
                                         : std::nullopt;
    if (!made || (!made->of_job && !made->made_group)) {
      return std::nullopt;
    }
    made->callers.back().function = callers[i].function;
    LaunchedCall launched{.operation = std::move(made->operation),
                          .callers = std::move(made->callers),
                          .maybe = passed.from_start,
                          .made_group = made->made_group,

                          .unrecorded = made->unrecorded};
    launched.callers.insert(launched.callers.end(),
                            callers.begin() + static_cast<std::ptrdiff_t>(i) + 1, callers.end());
    return launched;
  }
  return std::nullopt;
}

}  // namespace

const Operation* operation_called(const SourceText& lines, std::string_view callee) {
  const auto& imports = program::facts_of(lines).imports;
  const std::size_t dot = callee.find('.');
  const auto head = imports.find(callee.substr(0, dot));
  if (head == imports.end()) {
    return nullptr;
  }
  const std::string_view rest = dot == std::string_view::npos ? "" : callee.substr(dot);
  const std::string qualified = head->second + std::string(rest);
  if (!program::lies_in(qualified, "torch.distributed")) {
    return rest.empty() ? nullptr : device_operation_of(qualified);
  }
  return operation_of(dot == std::string_view::npos ? std::string_view(head->second) : callee);
}

bool wraps_in_ddp(const model::JobModel& job) {
  return std::any_of(job.sources.begin(), job.sources.end(), [](const auto& source) {
    return model::is_user_file(source.first) && names_ddp(program::facts_of(source.second));
  });
}

bool waits_in_line_itself(const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  for (const model::Frame& frame : thread.frames) {
    if (&frame == user) {
      return true;
    }
    if (frame.language == stacks::Language::kPython) {
      return false;
    }
  }
  return false;
}

std::optional<LaunchedCall> launched_last(const model::JobModel& job,
                                          const std::vector<model::CallSite>& callers,
                                          std::size_t frames, bool here) {
  auto launched = last_launch(job, callers, frames, here, Wanted::kAny);
  return launched && !launched->made_group ? std::move(launched) : std::nullopt;
}

std::vector<LaunchedBy> launched_in_groups(const model::JobModel& job,
                                           const std::vector<Standing>& standings) {
  std::vector<LaunchedBy> out;
  for (const Standing& one : standings) {
    auto launched = stays_behind_device(one)
                        ? last_launch(job, one.callers, frames_parted(one, standings),
                                      waits_in_line_itself(*one.thread), Wanted::kAny)
                        : std::nullopt;
    if (!launched || launched->maybe || !launched->made_group) {
      return {};
    }
    out.push_back({.rank = one.rank, .call = std::move(*launched)});
  }
  return out;
}

std::vector<model::CallSite> backward_before(const model::JobModel& job,
                                             const std::vector<model::CallSite>& callers,
                                             bool here) {
  auto launched = last_launch(job, callers, callers.size(), here, Wanted::kBackward);
  if (!launched && !here) {  // a loop whose only backward() is on the line itself: this or the last
    launched = last_launch(job, callers, callers.size(), true, Wanted::kBackward);
  }
  return launched ? std::move(launched->callers) : std::vector<model::CallSite>();
}

void take_launched_calls(const model::JobModel& job, const History& history,
                         std::vector<Standing>& standings) {
  const bool one_line =
      std::all_of(standings.begin(), standings.end(),
                  [&standings](const Standing& one) { return one.user == standings.front().user; });
  if (one_line || !std::all_of(standings.begin(), standings.end(), waits_or_has_ended) ||
      std::none_of(standings.begin(), standings.end(), stays_behind_device)) {
    return;
  }
  const std::vector<Standing> seen = standings;
  for (Standing& one : standings) {
    const bool recorded = !history.empty();
    auto launched = stays_behind_device(one) && (!recorded || all_calls_are_over(history, one.rank))
                        ? launched_last(job, one.callers, frames_parted(one, seen),
                                        waits_in_line_itself(*one.thread))
                        : std::nullopt;
    if (launched && recorded && !launched->unrecorded) {
      continue;  // the record would show it
    }
    if (launched && !may_have_missed(*launched, one, seen)) {
      one.activity = Activity::kCollective;
      one.call = BlockedCall{.operation = launched->operation,
                             .group = recorded ? std::string() : world_group(job)};
      one.user = launched->callers.front();
      one.callers = std::move(launched->callers);
      one.launched = true;
    }
  }
}

}  // namespace ddpdoctor::graph
