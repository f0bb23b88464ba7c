// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/activity_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/path_ends.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

bool is_of_python(const ActivityRule& rule) {
  return rule.match == Match::kPython || rule.match == Match::kInnermostPython;
}

bool matches(const ActivityRule& rule, const stacks::Frame& frame) {
  if (is_of_python(rule)) {
    if (frame.language != stacks::Language::kPython) {
      return false;
    }
    // A rule for a whole file applies to its functions; its "<module>" frame runs during the
    // import.
    return (rule.function.empty() ? frame.function != "<module>"
                                  : plain_name(frame.function) == rule.function) &&
           base::path_contains(frame.file, rule.file);
  }
  if (frame.language != stacks::Language::kNative) {
    return false;
  }
  if (rule.match == Match::kModule) {
    return frame.module.find(rule.file) != std::string::npos;
  }
  if (rule.match == Match::kNativeExact) {
    return frame.function == rule.function;
  }
  return frame.function.find(rule.function) != std::string::npos;
}

// "pdb.py" must not match "mypdb.py"; patterns with a folder are specific enough.
bool at_border(const ActivityRule& rule, const stacks::Frame& frame) {
  if (!is_of_python(rule) || rule.file.empty()) {
    return true;
  }
  const std::size_t at = frame.file.rfind(rule.file);
  return at == 0 || at == std::string::npos || frame.file[at - 1] == '/' ||
         frame.file[at - 1] == ' ' || rule.file.starts_with("importlib");
}

// A function in a file of the compiler that runs what was compiled (torch 2.0 to 2.5).
bool runs_compiled(const stacks::Frame& frame) {
  const std::string_view name = plain_name(frame.function);
  return frame.file.find("torch/_inductor/") != std::string::npos &&
         (name == "run" || name == "__call__");
}

// The frame runs because a library is being imported: importing torch._dynamo compiles nothing.
// Modules that inductor generates are executed in order to compile.
bool is_part_of_import(std::span<const stacks::Frame> callers) {
  for (const stacks::Frame& caller : callers) {
    if (caller.language == stacks::Language::kPython && model::is_user_file(caller.file)) {
      return false;
    }
    if (caller.language == stacks::Language::kPython && caller.function == "<module>") {
      return caller.file.find("torchinductor_") == std::string::npos;
    }
  }
  return false;
}

// What a thread waits for according to the kernel or the lock reader; nothing if only frames can
// show it.
std::optional<Activity> activity_by_wait(const model::Thread& thread) {
  constexpr std::array<std::pair<std::string_view, Activity>, 9> kWaits = {{
      {"store-key", Activity::kStore},
      {"import-lock", Activity::kImport},
      {"mutex", Activity::kLock},
      {"process", Activity::kJoin},
      {"input", Activity::kInput},
      {"fifo", Activity::kIo},
      {"file", Activity::kIo},
      {"file-lock", Activity::kIo},
      {"lock-file", Activity::kIo},
  }};
  if (!thread.waits_on) {
    return std::nullopt;
  }
  const auto* const found = std::find_if(kWaits.begin(), kWaits.end(), [&](const auto& entry) {
    return entry.first == thread.waits_on->kind;
  });
  return found == kWaits.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::string_view plain_name(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

const ActivityRule* deciding_rule(std::span<const stacks::Frame> frames, const stacks::Frame** at) {
  const ActivityRule* best = nullptr;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    for (const ActivityRule& rule : activity_rules()) {
      if ((best == nullptr || rule.weight > best->weight) && matches(rule, frames[i]) &&
          at_border(rule, frames[i]) && (rule.match != Match::kInnermostPython || i == 0) &&
          !(rule.activity == Activity::kCompiling &&
            (runs_compiled(frames[i]) || is_part_of_import(frames.subspan(i + 1))))) {
        best = &rule;
        *at = &frames[i];
      }
    }
  }
  return best;
}

const ActivityRule* rule_of_file(const model::Thread& thread, const model::Frame* user) {
  if (user == nullptr) {
    return nullptr;
  }
  const auto first = thread.frames.begin() + (user - thread.frames.data());
  const auto last = std::find_if(first, thread.frames.end(), [user](const stacks::Frame& frame) {
    return frame.file != user->file;
  });
  const stacks::Frame* at = nullptr;
  const ActivityRule* rule = deciding_rule({first, last}, &at);
  return rule != nullptr && rule->match == Match::kPython &&
                 rule->file.find('/') != std::string_view::npos
             ? rule
             : nullptr;
}

Activity activity_by_state(const model::JobModel& job, const model::Thread& thread) {
  if (const auto waits = activity_by_wait(thread)) {
    return *waits;
  }
  if (thread.state == 'D') {
    return Activity::kIo;
  }
  if (thread.wchan.find("nanosleep") != std::string::npos) {
    return Activity::kSleeping;
  }
  const stacks::Frame* user = model::user_frame(thread);
  if (user != nullptr && user == thread.frames.data()) {
    const auto text = model::source_line(job, user->file, user->line);
    if (text && text->find("sleep(") != std::string_view::npos) {
      return Activity::kSleeping;
    }
  }
  return thread.state == 'R' ? Activity::kComputing : Activity::kUnknown;
}

}  // namespace ddpdoctor::graph
