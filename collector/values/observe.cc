// SPDX-License-Identifier: Apache-2.0
#include "collector/values/observe.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python_visit.h"
#include "collector/values/callee_reader.h"
#include "collector/values/decision_reader.h"
#include "collector/values/evaluator.h"
#include "collector/values/freshness.h"
#include "collector/values/source_files.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Decision;

constexpr std::size_t kMostFrames = 12;  // of the user's, innermost first
constexpr std::size_t kMostHeld = 32;    // locals of a frame, attributes of its `self`

std::optional<int> number_in(const std::map<std::string, std::string>& variables,
                             const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end()) {
    return std::nullopt;
  }
  int value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 ? std::optional(value) : std::nullopt;
}

ProcessFacts facts_of(const stacks::ProcessStacks& process) {
  ProcessFacts facts;
  if (process.torch) {
    facts.rank = process.torch->rank;
    facts.world_size = process.torch->world_size;
    facts.group_exists = !process.torch->groups.empty();
    facts.torch_version = process.torch->version;
  }
  // What torchrun gives is what init_process_group() took, once there is a group.
  if (process.python && facts.group_exists) {
    const auto& variables = process.python->environment;
    facts.rank = facts.rank ? facts.rank : number_in(variables, "RANK");
    facts.world_size = facts.world_size ? facts.world_size : number_in(variables, "WORLD_SIZE");
  }
  return facts;
}

bool in_distributed(const stacks::PythonVisit::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& one) {
    return one.frame.file.find("torch/distributed/") != std::string::npos;
  });
}

/// A DataLoader's worker decides nothing of what the ranks call.
bool is_worker(const stacks::PythonVisit::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& one) {
    return one.frame.function == "_worker_loop" &&
           one.frame.file.find("torch/utils/data/") != std::string::npos;
  });
}

/// A frame of the user's with its source.
struct UserFrame {
  const stacks::PythonFrame* python;
  const program::SourceIndex& index;
  const program::Scope& function;
  stacks::Scope scope;
  Way way;

  [[nodiscard]] const stacks::Frame& frame() const {
    return python->frame;
  }
  [[nodiscard]] Whereabouts whereabouts() const {
    return {.file = frame().file, .function = frame().function, .at = frame().line};
  }
};

/// One visit of one process.
class Visit {
 public:
  Visit(stacks::PythonVisit& visit, SourceFiles& files)
      : visit_(visit),
        files_(files),
        pid_(visit.stacks.pid),
        evaluator_(visit.python.objects(), facts_of(visit.stacks)),
        reader_(evaluator_, values_) {
    evaluator_.set_bodies([this](const std::string& file, int line, std::string_view name) {
      return files_.body(pid_, file, line, name);
    });
  }

  std::vector<SeenValue> values(std::chrono::microseconds time) {
    std::vector<UserFrame> frames = user_frames();  // files are read before the clock starts
    deadline_ = Clock::now() + time;
    evaluator_.set_deadline(deadline_);
    for (UserFrame& frame : frames) {
      add_decisions(frame);
    }
    for (UserFrame& frame : frames) {
      add_held(frame);
    }
    CalleeReader callees(evaluator_, files_, reader_, pid_, deadline_);
    for (const UserFrame& frame : frames) {
      callees.leave_out(frame.frame().file, frame.function.first_line);
    }
    for (UserFrame& frame : frames) {
      Names names{.scope = &frame.scope};
      callees.read(frame.function, frame.frame().line, names,
                   [&frame](program::Node expression, program::Node owner) {
                     return frame.way.since({.kind = program::DecisionKind::kIf,
                                             .condition = expression,
                                             .subject = {},
                                             .owner = owner,
                                             .line = owner.line(),
                                             .text = {}});
                   });
    }
    return std::move(values_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<UserFrame> user_frames() {
    std::vector<UserFrame> out;
    for (const auto& thread : visit_.threads) {
      if ((thread.tid != pid_ && !in_distributed(thread)) || is_worker(thread)) {
        continue;
      }
      for (const stacks::PythonFrame& one : thread.frames) {
        if (out.size() < kMostFrames && !one.raw.shim && one.frame.line > 0 &&
            model::is_user_file(one.frame.file) && stands(one.raw)) {
          add_frame(one, out);
        }
      }
    }
    return out;
  }

  void add_frame(const stacks::PythonFrame& one, std::vector<UserFrame>& out) {
    const std::string& file = one.frame.file;
    const program::SourceIndex* index = files_.index(pid_, file);
    const std::string name = one.frame.function.substr(one.frame.function.rfind('.') + 1);
    const program::Scope* function =
        index == nullptr ? nullptr : index->scope_of_frame(one.frame.line, name);
    if (function != nullptr) {
      out.push_back({.python = &one,
                     .index = *index,
                     .function = *function,
                     .scope = stacks::Scope(visit_.python.objects(), one.raw),
                     .way = Way(*index, files_.effects(pid_, file), *function, one.frame.line)});
    }
  }

  /// The frame is still where it was when its stack was read.
  bool stands(const stacks::RawPythonFrame& raw) {
    stacks::PythonObjects& objects = visit_.python.objects();
    const auto now = stacks::read_python_frame(objects.memory(), objects.layout(), raw.address);
    return now && now->code == raw.code && now->instruction == raw.instruction;
  }

  [[nodiscard]] bool late() const {
    return Clock::now() >= deadline_;
  }

  void add_decisions(UserFrame& frame) {
    const int line = frame.frame().line;
    std::vector<Decision> decisions = program::decisions_of(frame.index, frame.function);
    add_loops(frame, decisions);
    // The nearest first: what time does not suffice for matters least.
    std::stable_sort(decisions.begin(), decisions.end(), [line](const auto& a, const auto& b) {
      return std::abs(a.line - line) < std::abs(b.line - line);
    });
    Names names{.scope = &frame.scope};
    program::Node matched;  // of the cases of one match only the first is asked
    for (const Decision& decision : decisions) {
      if (late()) {
        return;
      }
      const bool is_case = decision.kind == program::DecisionKind::kCase && decision.subject;
      if (is_case && !(decision.subject == matched)) {
        matched = decision.subject;
        reader_.add(frame.whereabouts(), frame.way.since(decision), matched, matched.line(), false,
                    names);
      } else if (decision.is_test() && decision.kind != program::DecisionKind::kFilter) {
        reader_.add(frame.whereabouts(), frame.way.since(decision), decision.condition,
                    decision.line, true, names);
      }
    }
  }

  /// How far each `for` loop around the line has come, and which loops were left.
  void add_loops(const UserFrame& frame, const std::vector<Decision>& decisions) {
    std::vector<const Decision*> entered;
    for (const Decision& decision : decisions) {
      if (decision.kind == program::DecisionKind::kFor && frame.way.is_in(decision)) {
        entered.push_back(&decision);
      } else if (decision.kind == program::DecisionKind::kFor && frame.way.is_behind(decision)) {
        add_loop(frame, decision, "ended");
      }
    }
    const std::vector<stacks::Iteration>& loops = frame.frame().loops;
    for (std::size_t i = 0; i < entered.size(); ++i) {
      const bool counted =
          entered.size() == loops.size() && loops[i].done.has_value() && !loops[i].loose;
      const auto total = counted ? loops[i].total() : std::nullopt;
      add_loop(frame, *entered[i],
               !counted ? std::string()
               : total  ? fmt::format("iteration {} of {}", *loops[i].done, *total)
                        : fmt::format("iteration {}", *loops[i].done));
    }
  }

  void add_loop(const UserFrame& frame, const Decision& loop, const std::string& text) {
    SeenValue seen =
        DecisionReader::made(ValueRole::kLoop, frame.whereabouts(), loop.line, loop.text);
    seen.value = text;
    seen.state = text.empty() ? ValueState::kUnknown : ValueState::kKnown;
    seen.reason = text.empty() ? "its iterator does not say how far it is" : "";
    values_.push_back(std::move(seen));
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

  /// Floats are each rank's own; names with two underscores are Python's.
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
  Evaluator evaluator_;
  std::vector<SeenValue> values_;
  DecisionReader reader_;
  Clock::time_point deadline_{};
};

}  // namespace

Observer::Observer(std::chrono::microseconds time)
    : time_(time), files_(std::make_unique<SourceFiles>()) {}

Observer::~Observer() = default;

std::vector<model::SeenValue> Observer::observe(stacks::PythonVisit& visit) {
  return Visit(visit, *files_).values(time_);
}

}  // namespace ddpdoctor::values
