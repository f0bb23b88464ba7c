// SPDX-License-Identifier: Apache-2.0
#include "collector/values/observe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python_visit.h"
#include "collector/stacks/torch/tensor_item.h"
#include "collector/values/again.h"
#include "collector/values/arm_traces.h"
#include "collector/values/callee_reader.h"
#include "collector/values/cpu_clock.h"
#include "collector/values/decision_reader.h"
#include "collector/values/dispatch_reader.h"
#include "collector/values/evaluator.h"
#include "collector/values/except_reader.h"
#include "collector/values/file_answers.h"
#include "collector/values/freshness.h"
#include "collector/values/loop_reader.h"
#include "collector/values/source_files.h"
#include "collector/values/user_frames.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Decision;

constexpr std::size_t kMostHeld = 32;  // locals of a frame, attributes of its `self`
constexpr std::size_t kLongestObserved = 64;
constexpr std::chrono::milliseconds kMostReading{20};  // of files that only calls lead to

Value value_of(const stacks::TensorNumber& item) {
  if (const auto* const truth = std::get_if<bool>(&item)) {
    return Value::boolean(*truth);
  }
  const auto* const integer = std::get_if<std::int64_t>(&item);
  return integer != nullptr ? Value::number(*integer) : Value::number(std::get<double>(item));
}

/// `while True`: the condition reads nothing.
bool is_constant(program::Node condition) {
  if (condition.is(program::NodeKind::kName)) {
    return false;
  }
  const auto parts = condition.children();
  return std::all_of(parts.begin(), parts.end(), is_constant);
}

/// One visit of one process.
class Visit {
 public:
  Visit(stacks::PythonVisit& visit, SourceFiles& files)
      : visit_(visit),
        files_(files),
        pid_(visit.stacks.pid),
        frames_(visit, files),
        file_answers_(pid_),
        evaluator_(visit.python.objects(), facts_of(visit.stacks)),
        reader_(evaluator_, values_),
        dispatch_(evaluator_, visit.python.objects(), values_),
        loops_(evaluator_, visit.python.objects(), values_) {
    evaluator_.set_tensor_item(
        [this, layouts = stacks::torch_layouts(facts_of(visit_.stacks).torch_version)](
            RemoteAddress tensor) -> std::optional<Value> {
          stacks::PythonObjects& objects = visit_.python.objects();
          const auto item =
              stacks::tensor_item(objects, layouts, tensor, objects.type_name(tensor));
          return item ? std::optional(value_of(*item)) : std::nullopt;
        });
    evaluator_.set_files([this](std::string_view question, const std::string& path) {
      return file_answers_.ask(question, path);
    });
    evaluator_.set_bodies([this](const std::string& file, int line, std::string_view name) {
      return body(file, line, name);
    });
  }

  std::vector<SeenValue> values(std::chrono::microseconds time) {
    // Files are read before the time limit starts.
    std::vector<UserFrame> frames =
        frames_.read([this](const stacks::Frame& frame, const program::SourceIndex& index) {
          loops_.add_comprehension(frame, index);
        });
    std::vector<UserFrame> generators = frames_.of_generators(frames);
    deadline_ = CpuClock::now() + time;
    evaluator_.set_deadline(deadline_);
    for (UserFrame& frame : frames) {
      add_decisions(frame, Reached::kYes);
    }
    for (UserFrame& frame : generators) {
      add_decisions(frame, Reached::kYes);
    }
    for (UserFrame& frame : frames) {
      add_held(frame);
    }
    for (UserFrame& frame : generators) {
      add_held(frame);
    }
    for (UserFrame& frame : frames) {
      read_dispatch(frame, Reached::kYes);
    }
    CalleeReader callees(evaluator_, files_, reader_, loops_, dispatch_, pid_, deadline_);
    for (const UserFrame& frame : frames) {
      callees.leave_out(frame.frame().file, frame.function.first_line);
    }
    for (UserFrame& frame : frames) {
      read_callees(callees, frame, Reached::kYes);
    }
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const int line = frame->frame().line;
      if (again_) {  // what is called in a loop is called again
        add_decisions(*frame, Reached::kNotAgain);
        read_dispatch(*frame, Reached::kNotAgain);
        read_callees(callees, *frame, Reached::kNotAgain);
        again_->enter(frame->index, frame->function, line);
      } else if (is_in_a_loop(*frame)) {
        again_.emplace(files_.effects(pid_), frame->index, frame->function, line);
      }
    }
    return std::move(values_);
  }

 private:
  /// Reading a file for the first time takes longer than evaluating what it says, and is not part
  /// of the time for that.
  const Expression* body(const std::string& file, int line, std::string_view name) {
    const auto begin = CpuClock::now();
    const Expression* const found = files_.body(pid_, file, line, name);
    const auto took = std::min(CpuClock::now() - begin, reading_left_);
    reading_left_ -= took;
    deadline_ += took;
    evaluator_.set_deadline(deadline_);
    return found;
  }

  /// Whether the current call of the function has reached a decision, or only a later iteration
  /// will.
  enum class Reached { kYes, kNotAgain };

  void read_callees(CalleeReader& callees, UserFrame& frame, Reached reached) {
    Names names{.scope = &frame.scope};
    callees.read(frame.function, frame.frame().line, names, freshly(frame, reached));
  }

  void read_dispatch(UserFrame& frame, Reached reached) {
    Names names{.scope = &frame.scope};
    const Whereabouts where = frame.whereabouts();
    dispatch_.read({.where = where,
                    .function = frame.function,
                    .names = names,
                    .freshly = freshly(frame, reached),
                    .read_freshly = [&](program::Node expression, program::Node owner,
                                        const std::set<std::string>& read) {
                      return reached == Reached::kYes
                                 ? frame.way.since(decision_of(expression, owner), read)
                                 : again_->since(read);
                    }});
  }

  static Decision decision_of(program::Node expression, program::Node owner) {
    return {.kind = program::DecisionKind::kIf,
            .condition = expression,
            .subject = {},
            .owner = owner,
            .line = owner.line(),
            .text = {}};
  }

  CalleeReader::Freshly freshly(const UserFrame& frame, Reached reached) {
    return [this, &frame, reached](program::Node expression, program::Node owner) -> Since {
      Since since = frame.way.since(decision_of(expression, owner));
      if (reached == Reached::kYes) {
        return since;
      }
      return since.freshness == Freshness::kNotReached
                 ? again_->since(frame.index, frame.function, expression)
                 : Since{.freshness = Freshness::kNotReached, .reason = {}};
    };
  }

  static bool is_in_a_loop(const UserFrame& frame) {
    const auto decisions = program::decisions_of(frame.index, frame.function);
    return std::any_of(decisions.begin(), decisions.end(), [&frame](const Decision& decision) {
      const bool loops = decision.kind == program::DecisionKind::kFor ||
                         decision.kind == program::DecisionKind::kWhile;
      return loops && frame.way.is_in(decision);
    });
  }

  [[nodiscard]] bool late() const {
    return CpuClock::now() >= deadline_;
  }

  void add_decisions(UserFrame& frame, Reached reached) {
    const int line = frame.frame().line;
    std::vector<Decision> decisions = program::decisions_of(frame.index, frame.function);
    if (reached == Reached::kYes) {
      loops_.add({.where = frame.whereabouts(),
                  .iterations = frame.frame().loops,
                  .way = frame.way,
                  .scope = frame.scope},
                 decisions);
    }
    std::erase_if(decisions, [&frame, reached](const Decision& decision) {
      const bool ahead = frame.way.since(decision).freshness == Freshness::kNotReached;
      return ahead != (reached == Reached::kNotAgain);
    });
    // The nearest first: if the time runs out, the least relevant ones are missing.
    std::stable_sort(decisions.begin(), decisions.end(), [line](const auto& a, const auto& b) {
      return std::abs(a.line - line) < std::abs(b.line - line);
    });
    Names names{.scope = &frame.scope};
    program::Node matched;  // only the first case of a match is evaluated
    for (const Decision& decision : decisions) {
      if (late()) {
        return;
      }
      const bool is_case = decision.kind == program::DecisionKind::kCase && decision.subject;
      if (decision.kind == program::DecisionKind::kFor && !frame.way.lies_in(decision.owner) &&
          !frame.way.is_behind(decision)) {
        loops_.add_length(frame.whereabouts(), decision, {.freshness = Freshness::kNotReached},
                          names);
      }
      if (decision.kind == program::DecisionKind::kExcept && reached == Reached::kYes) {
        add_caught(frame, decision);
      }
      if (is_case && !(decision.subject == matched)) {
        matched = decision.subject;
        reader_.add(frame.whereabouts(), asked(frame, decision, matched, matched.line(), false),
                    names);
      } else if (decision.is_test() && decision.kind != program::DecisionKind::kFilter &&
                 !is_constant(decision.condition)) {
        reader_.add(frame.whereabouts(),
                    asked(frame, decision, decision.condition, decision.line, true), names);
      }
      if (reached == Reached::kYes) {
        add_traces(frame, decision);
      }
    }
  }

  void add_caught(const UserFrame& frame, const Decision& clause) {
    const Caught caught = caught_by(frame, clause);
    SeenValue seen =
        DecisionReader::made(ValueRole::kCaught, frame.whereabouts(), clause.line,
                             clause.text.empty() ? std::string("except") : "except " + clause.text);
    seen.value = base::elide(caught.value, kLongestObserved);
    seen.state = caught.value.empty() ? ValueState::kUnknown : ValueState::kKnown;
    seen.reason = caught.reason;
    values_.push_back(std::move(seen));
  }

  void add_traces(UserFrame& frame, const Decision& decision) {
    for (const std::string& name : traces_of(frame.way.bindings(), frame.function, decision)) {
      const stacks::Binding found = frame.scope.find(name);
      const Value value = found.local && found.kind == stacks::Binding::Kind::kValue
                              ? evaluator_.load(found.value)
                              : Value();
      if (evaluator_.says_all(value)) {
        SeenValue seen =
            DecisionReader::made(ValueRole::kTrace, frame.whereabouts(), decision.line, name);
        seen.value = reader_.shown(value, name);
        seen.state = ValueState::kKnown;
        values_.push_back(std::move(seen));
      }
    }
  }

  DecisionReader::Asked asked(const UserFrame& frame, const Decision& decision,
                              program::Node condition, int line, bool is_test) {
    const bool ahead = frame.way.since(decision).freshness == Freshness::kNotReached;
    return {.condition = condition,
            .line = line,
            .is_test = is_test,
            .since = ahead && again_ ? again_->since(frame.index, frame.function, condition)
                                     : frame.way.since(decision),
            .outcome = frame.way.outcome(decision),
            .assigned_since =
                [this, &frame, &decision, ahead](const std::set<std::string>& read) {
                  static_cast<void>(files_.effects(pid_));  // with the files that were just read
                  return ahead && again_ ? again_->since(read) : frame.way.since(decision, read);
                },
            .since_of_part =
                [this, &frame, &decision, ahead](program::Node part) {
                  if (ahead && again_) {
                    return again_->since(frame.index, frame.function, part);
                  }
                  Decision of_part = decision;
                  of_part.condition = part;
                  of_part.subject = {};
                  return frame.way.since(of_part);
                }};
  }

  void add_held(UserFrame& frame) {
    std::size_t count = 0;
    for (const auto& [name, address] : frame.scope.locals()) {
      if (late()) {
        return;
      }
      count += count < kMostHeld && add_one_held(frame, name, address) ? 1 : 0;
      if (name == "self") {
        add_attributes(frame, address);
      }
    }
  }

  void add_attributes(const UserFrame& frame, RemoteAddress self) {
    stacks::PythonObjects& objects = visit_.python.objects();
    std::size_t count = 0;
    for (const auto& [key, value] : objects.own_attributes(self, 4 * kMostHeld)) {
      const auto name = objects.string(key, 64);
      if (name && count < kMostHeld && !late()) {
        count += add_one_held(frame, "self." + base::printable(*name), value) ? 1 : 0;
      }
    }
  }

  /// Floats differ on each rank anyway; names with two underscores belong to Python.
  bool add_one_held(const UserFrame& frame, const std::string& name, RemoteAddress address) {
    const Value value = evaluator_.load(address);
    if (!value.known() || value.kind == Value::Kind::kReal ||
        name.find("__") != std::string::npos) {
      return false;
    }
    SeenValue seen =
        DecisionReader::made(ValueRole::kHeld, frame.whereabouts(), frame.frame().line, name);
    seen.value = reader_.shown(value, name);
    seen.state = ValueState::kKnown;
    values_.push_back(std::move(seen));
    return true;
  }

  stacks::PythonVisit& visit_;
  SourceFiles& files_;
  pid_t pid_;
  UserFrames frames_;
  FileAnswers file_answers_;
  Evaluator evaluator_;
  std::vector<SeenValue> values_;
  DecisionReader reader_;
  DispatchReader dispatch_;
  LoopReader loops_;
  std::optional<Again> again_;  // of the frames further in
  CpuClock::time_point deadline_{};
  CpuClock::duration reading_left_ = kMostReading;
};

}  // namespace

Observer::Observer(std::chrono::microseconds time, program::KnownTexts known)
    : time_(time), files_(std::make_unique<SourceFiles>(std::move(known))) {}

Observer::~Observer() = default;

std::vector<model::SeenValue> Observer::observe(stacks::PythonVisit& visit) {
  return Visit(visit, *files_).values(time_);
}

program::KnownTexts Observer::texts() const {
  return files_->texts();
}

std::vector<SeenLock> Observer::locks(stacks::PythonVisit& visit) {
  Evaluator evaluator(visit.python.objects(), {});
  evaluator.set_deadline(CpuClock::now() + time_);
  return LockReader(evaluator, *files_, visit).read();
}

std::vector<CalledObject> Observer::objects(stacks::PythonVisit& visit) {
  Evaluator evaluator(visit.python.objects(), {});
  evaluator.set_deadline(CpuClock::now() + time_);
  return ObjectReader(evaluator, *files_, visit).read();
}

}  // namespace ddpdoctor::values
