// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unseen_candidates.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "collector/detectors/partings/callee_origin.h"
#include "collector/detectors/partings/launches.h"
#include "collector/detectors/partings/unseen_weights.h"
#include "collector/model/questions.h"
#include "collector/program/origin/origin.h"
#include "collector/program/questions/choices.h"
#include "collector/program/questions/code.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/questions/swallowing_contexts.h"

namespace ddpdoctor::detectors {
namespace {

using program::Choice;
using program::Decision;
using program::DecisionKind;
using program::File;
using program::Node;

constexpr int kDeepest = 4;                  // depth of calls below a function on the stack
constexpr std::size_t kMostFunctions = 300;  // functions analysed for one result
const std::vector<program::CallBehind> kNoCalls;
// Distance added for code inside a call, so that it is further back than the call.
constexpr int kStepsOfACall = 1000;

/// The called operations, sorted.
std::vector<std::string> operations(const std::vector<Launch>& launches) {
  std::vector<std::string> out;
  for (const Launch& one : launches) {
    out.push_back(one.operation);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// `except StopIteration: break`, `if batch is None: break`: the end of a loop's data.
bool ends_data(const Decision& decision, const program::SourceText& text) {
  const auto loop = program::loop_around(text, decision.line);
  const auto end = loop ? program::data_end_of(text, loop->line) : std::nullopt;
  return end && end->noticed == decision.line;
}

/// Follows the code before a line through the functions that were called there.
class Search {
 public:
  Search(const model::JobModel& job, const graph::Standing& standing, const model::RankSet& ranks)
      : job_(job), standing_(standing), weights_(job, ranks), launches_(job) {}

  std::vector<Candidate> read() {
    const auto& callers = standing_.callers;
    bool again = false;  // an outer frame is in a loop
    int distance = 0;
    std::vector<FunctionRun> runs;
    for (std::size_t i = callers.size(); i-- > 0;) {
      if (auto run = run_of(callers, i)) {
        run->again = again;
        again = again || run->behind.in_loop;
        runs.push_back(std::move(*run));
      }
    }
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {  // innermost first
      read_run(*run, distance);
      distance += 10 * kStepsOfACall;
    }
    std::vector<Candidate> out;
    for (auto& [line, one] : found_) {
      out.push_back(std::move(one));
    }
    std::stable_sort(out.begin(), out.end(), [](const Candidate& a, const Candidate& b) {
      return a.distance < b.distance;
    });
    return out;
  }

 private:
  [[nodiscard]] std::optional<FunctionRun> run_of(const Path& callers, std::size_t i) {
    const auto& files = launches_.files().all();
    const auto file = std::find_if(files.begin(), files.end(), [&](const File& one) {
      return one.path != nullptr && *one.path == callers[i].file;
    });
    if (file == files.end() || file->facts->index->empty()) {
      return std::nullopt;
    }
    const auto& index = *file->facts->index;
    const std::string name = callers[i].function.substr(callers[i].function.rfind('.') + 1);
    const program::Scope* scope = index.scope_of_frame(callers[i].line, name);
    scope = scope == nullptr ? &index.function_at(callers[i].line) : scope;
    FunctionRun run{
        .file = &*file,
        .scope = static_cast<std::size_t>(scope - file->scopes().data()),
        .callers = Path(callers.begin() + static_cast<std::ptrdiff_t>(i) + 1, callers.end()),
        .behind = program::behind(*file->text, *scope, callers[i].line)};
    read_.emplace(&*file, run.scope);
    return run;
  }

  void read_run(const FunctionRun& run, int distance) {
    for (const Choice& choice : run.behind.choices) {
      if (choice.returns || run.again) {  // a rank that took the other branch would not be here
        consider(choice, run, distance, /*of_stack=*/true);
      }
    }
    consider_contexts(run, distance);
    for (const program::CallBehind& one : run.behind.calls) {
      enter(one.call, run, distance + one.distance, 0);
    }
    if (run.again) {
      read_earlier_pass(run, distance + kStepsOfACall);
    }
  }

  /// An earlier iteration around it ran the whole function, also what is after the line.
  void read_earlier_pass(const FunctionRun& run, int distance) {
    FunctionRun whole = run;
    whole.behind = program::behind(*run.file->text, run.file->scopes()[run.scope], 0);
    for (const Choice& choice : whole.behind.choices) {
      const bool before = std::any_of(
          run.behind.choices.begin(), run.behind.choices.end(), [&choice](const Choice& known) {
            return known.decision.kind == choice.decision.kind &&
                   known.decision.condition == choice.decision.condition &&
                   known.decision.line == choice.decision.line;
          });
      if (!before) {
        consider(choice, whole, distance, /*of_stack=*/false);
      }
    }
    for (const program::CallBehind& one : whole.behind.calls) {
      enter(one.call, whole, distance, 0);
    }
  }

  void enter(Node call, const FunctionRun& from, int distance, int depth) {
    if (depth == kDeepest) {
      return;
    }
    const auto callees = launches_.callees(call, Launches::where_in(*from.file, from.scope, call));
    consider_dispatch(call, from, distance, callees);
    for (const program::Callee& callee : callees) {
      if (read_.size() > kMostFunctions || !read_.emplace(callee.file, callee.scope).second) {
        continue;
      }
      FunctionRun inside{.file = callee.file, .scope = callee.scope, .callers = from.callers};
      inside.callers.insert(inside.callers.begin(), place(from, call.line()));
      inside.behind = program::behind(*callee.file->text, callee.function(), 0);
      const int below = distance + kStepsOfACall;
      consider_contexts(inside, below);
      for (const Choice& choice : inside.behind.choices) {
        consider(choice, inside, below, /*of_stack=*/false);
      }
      for (const program::CallBehind& one : inside.behind.calls) {
        enter(one.call, inside, below, depth + 1);
      }
    }
  }

  [[nodiscard]] static model::CallSite place(const FunctionRun& run, int line) {
    return {
        .file = *run.file->path, .line = line, .function = run.file->scopes()[run.scope].qualified};
  }

  /// `messages`: includes messages. A message is for one rank only, so a test of the rank that
  /// leads to it does not separate ranks.
  std::vector<Launch> launched(const std::vector<Node>& calls, const FunctionRun& run,
                               bool messages) {
    std::vector<Launch> out;
    for (const Node call : calls) {
      for (Launch& one : launches_.of(call, Launches::where_in(*run.file, run.scope, call))) {
        if (messages || one.is != Launch::Is::kMessage) {
          out.push_back(std::move(one));
        }
      }
    }
    return out;
  }

  /// The first of these calls, all in this function, that launches a collective.
  model::CallSite first_in(const std::vector<Node>& calls, const FunctionRun& run) {
    for (const Node call : calls) {
      if (!launched({call}, run, false).empty()) {
        return place(run, call.line());
      }
    }
    return {};
  }

  /// The first launch behind a function that all ranks are in, in the functions around it. In a
  /// loop, what stands behind the call has been passed before.
  model::CallSite first_after(const FunctionRun& inner) {
    for (std::size_t i = 0; i < inner.callers.size(); ++i) {
      const auto run = run_of(inner.callers, i);
      std::vector<Node> calls;
      for (const program::CallBehind& one : run ? run->behind.calls : kNoCalls) {
        if (one.call.line() > inner.callers[i].line) {
          calls.push_back(one.call);
        }
      }
      if (const model::CallSite found = run ? first_in(calls, *run) : model::CallSite();
          found.known()) {
        return found;
      }
    }
    return {};
  }

  void consider(const Choice& choice, const FunctionRun& run, int distance, bool of_stack) {
    const Decision& decision = choice.decision;
    if (decision.kind == DecisionKind::kAssert) {
      return;
    }
    const bool loop = program::loops(decision.kind);
    const auto taken = launched(choice.if_taken, run, loop);
    const auto otherwise =
        loop ? std::vector<Launch>{} : launched(choice.if_not, run, /*messages=*/false);
    if (operations(taken) == operations(otherwise)) {
      return;
    }
    const bool ends = ends_data(decision, *run.file->text);
    const bool inside = otherwise.empty() || (!ends && taken.size() > otherwise.size());
    const Launch& launch = inside ? taken.front() : otherwise.front();
    Candidate one{.kind = decision.kind,
                  .where = place(run, decision.line),
                  .condition = decision.text,
                  .call = launch.site,
                  .operation = launch.operation,
                  .is = launch.is,
                  .inside = inside};
    one.skips = !loop && !inside && !choice.once;
    one.ends_loop = ends;
    if (loop || one.ends_loop) {
      one.after = first_in(loop ? choice.if_not : choice.if_taken, run);
      one.after = one.after.known() || !of_stack ? one.after : first_after(run);
    }
    one.distance = distance + choice.distance;
    const int first_call = loop ? first_in(choice.if_taken, run).line : 0;
    if (weights_.weigh(choice, run, {.of_stack = of_stack, .first_call = first_call}, one)) {
      keep(std::move(one));
    }
  }

  /// A context of the user's may end an exception: then the rest of its suite is skipped.
  void consider_contexts(const FunctionRun& run, int distance) {
    const program::Code code(*run.file->text);
    for (const std::size_t at :
         run.file->facts->index->statements_of(run.file->scopes()[run.scope])) {
      if (code.kind(at) != program::NodeKind::kWith) {
        continue;
      }
      std::vector<Node> calls = program::calls_within(code.suite(at));
      const auto inside = launched(calls, run, /*messages=*/false);
      if (inside.empty() ||
          !program::is_caught_by_context(code, at, *run.file->text, job_.sources)) {
        continue;
      }
      keep({.kind = DecisionKind::kExcept,
            .where = place(run, code[at].line),
            .condition = code.header_expression(at),
            .call = inside.front().site,
            .operation = inside.front().operation,
            .is = inside.front().is,
            .inside = false,
            .of_context = true,
            .skips = true,
            .speaks = Speaks::kException,
            .source = program::Source::kException,
            .distance = distance});
    }
  }

  void keep(Candidate one) {
    const auto [known, fresh] = found_.try_emplace({one.where.file, one.where.line}, one);
    if (!fresh && known->second.speaks < one.speaks) {
      known->second = std::move(one);
    }
  }

  /// The class of the object, or a table, decides which of these functions a call runs, and one of
  /// them always launches more than another.
  void consider_dispatch(Node call, const FunctionRun& run, int distance,
                         const std::vector<program::Callee>& callees) {
    const program::Callee* most = nullptr;
    std::vector<std::string> more;
    for (const program::Callee& one : callees) {
      for (const program::Callee& other : callees) {
        std::vector<std::string> beyond;
        const auto& all = launches_.always(one);
        const auto& theirs = launches_.always(other);
        std::set_difference(all.begin(), all.end(), theirs.begin(), theirs.end(),
                            std::back_inserter(beyond));
        if (beyond.size() > more.size()) {
          most = &one;
          more = std::move(beyond);
        }
      }
    }
    if (most == nullptr) {
      return;
    }
    const program::Origin origin =
        origin_of_callee(job_, place(run, call.line()), run.callers, call);
    const program::OriginStep* const chose = choosing_step(origin);
    const bool rank = origin.source == program::Source::kRank;
    const auto& inside = launches_.of_function(*most);
    const auto launch = std::find_if(inside.begin(), inside.end(), [&more](const Launch& one) {
      return one.operation == more.front() && one.is != Launch::Is::kMessage;
    });
    if (chose == nullptr || launch == inside.end() || !(rank || program::is_own(origin.source))) {
      return;
    }
    keep({.kind = DecisionKind::kTernary,
          .where = {.file = chose->file.empty() ? *run.file->path : chose->file,
                    .line = chose->line,
                    .function = {}},
          .condition = chose->text,
          .call = launch->site,
          .operation = launch->operation,
          .is = launch->is,
          .dispatches = true,
          .speaks = rank ? Speaks::kRank : Speaks::kOwn,
          .source = origin.source,
          .distance = distance});
  }

  const model::JobModel& job_;
  const graph::Standing& standing_;
  Weights weights_;
  Launches launches_;
  std::set<std::pair<const File*, std::size_t>> read_;
  std::map<std::pair<std::string, int>, Candidate> found_;
};

}  // namespace

bool Candidate::is_loop() const {
  return program::loops(kind);
}

std::vector<Candidate> candidates_behind(const model::JobModel& job,
                                         const graph::Standing& standing,
                                         const model::RankSet& ranks) {
  return job.sources.empty() ? std::vector<Candidate>{} : Search(job, standing, ranks).read();
}

}  // namespace ddpdoctor::detectors
