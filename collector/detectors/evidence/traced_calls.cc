// SPDX-License-Identifier: Apache-2.0
// strace prints a call when it begins, and its result when it returns; a stopped strace adds
// "<detached ...>" or "<unfinished ...>".
#include "collector/detectors/evidence/traced_calls.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestCall = 4096;
constexpr std::size_t kMostTraced = 4096;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int> take_int(std::string_view& text) {
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return value;
}

/// "Process 20069 attached", "strace: Process 20069 attached", also with " - interrupt to quit".
std::optional<int> attached(std::string_view line) {
  take(line, "strace: ");
  const bool named = take(line, "Process ");
  const auto pid = named ? take_int(line) : std::nullopt;
  return pid && line.starts_with(" attached") ? pid : std::nullopt;
}

/// "strace -p 20076 -s 1024" behind a prompt.
std::optional<int> told_to_attach(std::string_view line) {
  const std::size_t at = line.find("strace ");
  const std::size_t option = at == line.npos ? at : line.find(" -p", at);
  if (option == line.npos) {
    return std::nullopt;
  }
  std::string_view rest = base::trim(line.substr(option + 3));
  return take_int(rest);
}

/// "wait4(20076, ", "write(1, "text", 258": a name and a bracket.
std::optional<TracedCall> call_in(std::string_view line) {
  const std::size_t open = line.substr(0, 32).find('(');
  if (open == line.npos || open == 0) {
    return std::nullopt;
  }
  const std::string_view name = line.substr(0, open);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
  return plain ? std::optional(TracedCall{.name = std::string(name),
                                          .arguments = std::string(line.substr(open + 1)),
                                          .line = std::string(line)})
               : std::nullopt;
}

/// ") = 0", ")   = ? ERESTARTSYS": it returned.
bool returned(std::string_view line) {
  const std::size_t close = line.rfind(')');
  const std::size_t equals = close == line.npos ? close : line.find_first_not_of(' ', close + 1);
  return equals != line.npos && line.substr(equals).starts_with("= ") &&
         !line.substr(equals).starts_with("= ?");
}

/// The newest call of each process of one log.
struct Trace {
  std::map<pid_t, std::optional<TracedCall>> last;
  std::optional<pid_t> session;

  void read(std::string_view line) {
    if (const auto pid = attached(line)) {
      session = pid;
      return;
    }
    if (const auto pid = told_to_attach(line)) {
      session = pid;
      return;
    }
    std::string_view rest = line;
    const auto own = take(rest, "[pid ") ? take_own(rest) : std::nullopt;
    const auto whose = own ? own : session;
    auto call = whose ? call_in(rest) : std::nullopt;
    if (call && last.size() < kMostTraced) {
      call->pid = *whose;
      last[*whose] = returned(rest) ? std::nullopt : std::move(call);
    } else if (whose && rest.starts_with("<... ")) {
      last[*whose].reset();  // "<... read resumed>"
    }
  }

 private:
  static std::optional<int> take_own(std::string_view& rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto pid = take_int(rest);
    return pid && take(rest, "] ") ? pid : std::nullopt;
  }
};

}  // namespace

int TracedCall::first_number() const {
  std::string_view rest = arguments;
  return take_int(rest).value_or(-1);
}

std::vector<TracedCall> unfinished_calls(const model::JobModel& job) {
  std::vector<TracedCall> out;
  for (const model::Log& log : job.logs) {
    if (log.text.find("strace") == std::string::npos &&
        log.text.find(" attached") == std::string::npos) {
      continue;
    }
    Trace trace;
    for (const std::string_view line : base::split(log.text, '\n')) {
      trace.read(line.substr(0, kLongestCall));
    }
    for (auto& [pid, call] : trace.last) {
      if (call) {
        out.push_back(*std::move(call));
      }
    }
  }
  return out;
}

bool waits_for_exit_of(const TracedCall& call, pid_t child) {
  if (call.name == "wait4" || call.name == "waitpid") {
    return call.first_number() == child;
  }
  std::string_view rest = call.arguments;
  return call.name == "waitid" && take(rest, "P_PID, ") && take_int(rest) == child;
}

}  // namespace ddpdoctor::detectors
