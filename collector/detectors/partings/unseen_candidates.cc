// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/unseen_candidates.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "collector/detectors/partings/launches.h"
#include "collector/detectors/partings/rank_values.h"
#include "collector/model/questions.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/origin.h"
#include "collector/program/questions/choices.h"
#include "collector/program/questions/contexts.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/deciding.h"

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

bool loops(DecisionKind kind) {
  return kind == DecisionKind::kFor || kind == DecisionKind::kIterate ||
         kind == DecisionKind::kWhile;
}

bool goes_over(DecisionKind kind) {
  return kind == DecisionKind::kFor || kind == DecisionKind::kIterate;
}

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
      : job_(job), standing_(standing), ranks_(ranks), launches_(job) {}

  std::vector<Candidate> read() {
    const auto& callers = standing_.callers;
    bool again = false;  // an outer frame is in a loop
    int distance = 0;
    std::vector<Seat> seats;
    for (std::size_t i = callers.size(); i-- > 0;) {
      if (auto seat = seat_of(callers, i)) {
        seat->again = again;
        again = again || seat->behind.in_loop;
        seats.push_back(std::move(*seat));
      }
    }
    for (auto seat = seats.rbegin(); seat != seats.rend(); ++seat) {  // innermost first
      read_seat(*seat, distance);
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
  /// A function on the stack.
  struct Seat {
    const File* file = nullptr;
    std::size_t scope = 0;
    Path callers{};  // the frames around it
    program::Behind behind{};
    bool again = false;
  };

  [[nodiscard]] std::optional<Seat> seat_of(const Path& callers, std::size_t i) {
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
    Seat seat{.file = &*file,
              .scope = static_cast<std::size_t>(scope - file->scopes().data()),
              .callers = Path(callers.begin() + static_cast<std::ptrdiff_t>(i) + 1, callers.end()),
              .behind = program::behind(*file->text, *scope, callers[i].line)};
    read_.emplace(&*file, seat.scope);
    return seat;
  }

  void read_seat(const Seat& seat, int distance) {
    for (const Choice& choice : seat.behind.choices) {
      if (choice.returns || seat.again) {  // a rank that took the other branch would not be here
        consider(choice, seat, distance, /*of_stack=*/true);
      }
    }
    for (const program::CallBehind& one : seat.behind.calls) {
      enter(one.call, seat, distance + one.distance, 0);
    }
  }

  void enter(Node call, const Seat& from, int distance, int depth) {
    if (depth == kDeepest) {
      return;
    }
    for (const program::Callee& callee :
         launches_.callees(call, Launches::where_in(*from.file, from.scope, call))) {
      if (read_.size() > kMostFunctions || !read_.emplace(callee.file, callee.scope).second) {
        continue;
      }
      Seat inside{.file = callee.file, .scope = callee.scope, .callers = from.callers};
      inside.callers.insert(inside.callers.begin(), place(from, call.line()));
      inside.behind = program::behind(*callee.file->text, callee.function(), 0);
      const int below = distance + kStepsOfACall;
      for (const Choice& choice : inside.behind.choices) {
        consider(choice, inside, below, /*of_stack=*/false);
      }
      for (const program::CallBehind& one : inside.behind.calls) {
        enter(one.call, inside, below, depth + 1);
      }
    }
  }

  [[nodiscard]] static model::CallSite place(const Seat& seat, int line) {
    return {.file = *seat.file->path,
            .line = line,
            .function = seat.file->scopes()[seat.scope].qualified};
  }

  /// `messages`: includes messages. A message is for one rank only, so a test of the rank that
  /// leads to it does not separate ranks.
  std::vector<Launch> launched(const std::vector<Node>& calls, const Seat& seat, bool messages) {
    std::vector<Launch> out;
    for (const Node call : calls) {
      for (Launch& one : launches_.of(call, Launches::where_in(*seat.file, seat.scope, call))) {
        if (messages || one.is != Launch::Is::kMessage) {
          out.push_back(std::move(one));
        }
      }
    }
    return out;
  }

  /// The first of these calls, all in this function, that launches a collective.
  model::CallSite first_in(const std::vector<Node>& calls, const Seat& seat) {
    for (const Node call : calls) {
      if (!launched({call}, seat, false).empty()) {
        return place(seat, call.line());
      }
    }
    return {};
  }

  /// The first launch behind a function that all ranks are in, in the functions around it. In a
  /// loop, what stands behind the call has been passed before.
  model::CallSite first_after(const Seat& inner) {
    for (std::size_t i = 0; i < inner.callers.size(); ++i) {
      const auto seat = seat_of(inner.callers, i);
      std::vector<Node> calls;
      for (const program::CallBehind& one : seat ? seat->behind.calls : kNoCalls) {
        if (one.call.line() > inner.callers[i].line) {
          calls.push_back(one.call);
        }
      }
      if (const model::CallSite found = seat ? first_in(calls, *seat) : model::CallSite();
          found.known()) {
        return found;
      }
    }
    return {};
  }

  void consider(const Choice& choice, const Seat& seat, int distance, bool of_stack) {
    const Decision& decision = choice.decision;
    if (decision.kind == DecisionKind::kAssert) {
      return;
    }
    const bool loop = loops(decision.kind);
    const auto taken = launched(choice.if_taken, seat, loop);
    const auto otherwise =
        loop ? std::vector<Launch>{} : launched(choice.if_not, seat, /*messages=*/false);
    if (operations(taken) == operations(otherwise)) {
      return;
    }
    const bool ends = ends_data(decision, *seat.file->text);
    const bool inside = otherwise.empty() || (!ends && taken.size() > otherwise.size());
    const Launch& launch = inside ? taken.front() : otherwise.front();
    Candidate one{.kind = decision.kind,
                  .where = place(seat, decision.line),
                  .condition = decision.text,
                  .call = launch.site,
                  .operation = launch.operation,
                  .is = launch.is,
                  .inside = inside};
    one.skips = !loop && !inside && !choice.once;
    one.ends_loop = ends;
    if (loop || one.ends_loop) {
      one.after = first_in(loop ? choice.if_not : choice.if_taken, seat);
      one.after = one.after.known() || !of_stack ? one.after : first_after(seat);
    }
    one.distance = distance + choice.distance;
    if (!weigh(choice, seat, of_stack, one)) {
      return;
    }
    const auto [known, fresh] = found_.try_emplace({one.where.file, one.where.line}, one);
    if (!fresh && known->second.speaks < one.speaks) {
      known->second = std::move(one);
    }
  }

  /// Returns false if the decision had the same result on all ranks.
  bool weigh(const Choice& choice, const Seat& seat, bool of_stack, Candidate& one) {
    const Decision& decision = choice.decision;
    if (one.ends_loop) {
      one.speaks = Speaks::kOwnBatches;
      one.source = program::Source::kData;
      return true;
    }
    if (decision.kind == DecisionKind::kExcept) {
      one.speaks = Speaks::kException;
      one.source = program::Source::kException;
      return true;
    }
    const RankValues read = rank_values(job_, one.where, goes_over(decision.kind), ranks_);
    // No earlier decision had another result.
    const bool final = of_stack && choice.once && !seat.again;
    if (read.known && !read.differs() && final) {
      return false;
    }
    const program::Origin origin = origin_of(decision, seat);
    one.source = origin.source;
    if (goes_over(decision.kind)) {
      if (program::has_unlike_steps(*seat.file->text)) {
        return false;  // Join, no_sync(): made for ranks with different numbers of steps
      }
      one.of_batches = is_over_batches(choice, seat);
      if (!read.differs()) {
        return weigh_loop(choice, seat, origin, of_stack, one);
      }
    }
    if (origin.source == program::Source::kUniform &&
        !(goes_over(decision.kind) && origin.object)) {
      return false;  // a counter: hosts that ran ahead are at different steps
    }
    // Values are current ones: for an earlier iteration, or a function that has returned, only what
    // is equal in every iteration is evidence.
    const bool as_then = goes_over(decision.kind) || origin.source == program::Source::kRank ||
                         origin.source == program::Source::kEnvironment ||
                         (of_stack && ((choice.once && !seat.again) || are_at_one_step(job_)));
    if (read.differs() && as_then) {
      // "True" sorts before "False" by length
      one.differ = read.odd(goes_over(decision.kind) ? one.of_batches : one.inside);
      one.speaks = Speaks::kValues;
      return true;
    }
    if (origin.source == program::Source::kException && !origin.chain.empty()) {
      const program::OriginStep& last = origin.chain.back();
      one.handler = {.file = last.file.empty() ? one.where.file : last.file,
                     .line = last.line,
                     .function = {}};
    }
    // Whether there is a value, every n-th time: equal, unless its source never is.
    const bool option = origin.like_an_option && origin.source < program::Source::kQueue;
    one.speaks = origin.source == program::Source::kRank     ? Speaks::kRank
                 : program::is_own(origin.source) && !option ? Speaks::kOwn
                                                             : Speaks::kNothingElse;
    return one.speaks != Speaks::kNothingElse || origin.source == program::Source::kEnvironment ||
           origin.source == program::Source::kData;
  }

  /// Never for a comprehension, which iterates over elements.
  [[nodiscard]] bool is_over_batches(const Choice& choice, const Seat& seat) {
    const program::SourceText& text = *seat.file->text;
    const int loop = choice.decision.line;
    if (choice.decision.kind != DecisionKind::kFor) {
      return false;
    }
    const program::Node over = choice.decision.condition;
    if (over.is(program::NodeKind::kCall) &&
        over.field(program::Field::kFunction).text() == "sorted") {
      return false;  // items with an order are not batches
    }
    const program::Items items = program::items_of(text, loop, job_.sources);
    return items == program::Items::kBatches ||
           (items == program::Items::kUnknown &&
            !program::reduces_each(text, loop, first_in(choice.if_taken, seat).line, job_.sources));
  }

  /// The rank's share of a collection: `data[rank::world]`, `batches(rank)`.
  [[nodiscard]] bool rests_on_rank(const program::Origin& origin, const Seat& seat) const {
    if (origin.source == program::Source::kRank || origin.chain.empty()) {
      return origin.source == program::Source::kRank;
    }
    const program::OriginStep& last = origin.chain.back();
    const auto source = job_.sources.find(last.file);
    const program::SourceText& text =
        source == job_.sources.end() ? *seat.file->text : source->second;
    return program::origin_of(last.text, {.text = &text, .line = last.line}, job_.sources).source ==
           program::Source::kRank;
  }

  /// Not computed from batches: a loop may be over them for as long as they are equal in number.
  static bool is_own_state(program::Source source) {
    return source >= program::Source::kException && source != program::Source::kRank;
  }

  bool weigh_loop(const Choice& choice, const Seat& seat, const program::Origin& origin,
                  bool of_stack, Candidate& one) const {
    if (origin.source == program::Source::kUniform && !origin.object) {
      return false;
    }
    const bool own = origin.source == program::Source::kRank || program::is_own(origin.source);
    if (!one.of_batches && own) {
      one.speaks = origin.source == program::Source::kRank ? Speaks::kRank : Speaks::kOwn;
      return true;
    }
    // A loop over batches that all ranks are in has ended for some only if it is begun again.
    const bool again = !choice.once || seat.again;
    const bool begun_again = again && (rests_on_rank(origin, seat) || is_own_state(origin.source));
    one.speaks = Speaks::kOwnBatches;
    return !of_stack || !choice.led_here || begun_again;
  }

  [[nodiscard]] program::Origin origin_of(const Decision& decision, const Seat& seat) const {
    program::CallString frames;
    for (const model::CallSite& site : seat.callers) {
      const auto source = job_.sources.find(site.file);
      frames.push_back({.text = source == job_.sources.end() ? nullptr : &source->second,
                        .function = site.function,
                        .line = site.line});
    }
    return program::origin_of(
        decision.text,
        {.text = seat.file->text, .line = decision.condition.line(), .callers = &frames},
        job_.sources);
  }

  const model::JobModel& job_;
  const graph::Standing& standing_;
  const model::RankSet& ranks_;
  Launches launches_;
  std::set<std::pair<const File*, std::size_t>> read_;
  std::map<std::pair<std::string, int>, Candidate> found_;
};

}  // namespace

bool Candidate::is_loop() const {
  return loops(kind);
}

std::vector<Candidate> candidates_behind(const model::JobModel& job,
                                         const graph::Standing& standing,
                                         const model::RankSet& ranks) {
  return job.sources.empty() ? std::vector<Candidate>{} : Search(job, standing, ranks).read();
}

}  // namespace ddpdoctor::detectors
