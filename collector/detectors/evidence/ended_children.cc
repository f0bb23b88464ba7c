// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/ended_children.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestCommand = 60;

/// An ended child that was forked has the role of a DataLoader worker, whatever it was.
bool may_be_its_own(model::Role role) {
  return role == model::Role::kOther || role == model::Role::kDataLoaderWorker;
}

std::map<pid_t, EndedChild> ended_below(const model::JobModel& job, const model::Process& parent) {
  std::map<pid_t, EndedChild> out;
  for (const model::Process* child : children_of(job, parent)) {
    if (!alive(*child) && may_be_its_own(child->role)) {
      out[child->pid] = {.pid = child->pid,
                         .parent = parent.pid,
                         .exit = exit_of(job, *child).value_or(model::Exit{}),
                         .command = base::elide(fmt::format("{}", fmt::join(child->command, " ")),
                                                kLongestCommand)};
    }
  }
  for (const model::Fact* fact : model::facts(job, "exit")) {
    const auto role = model::role_of(fact->text("role").value_or("other"));
    if (fact->pid && pid_field(*fact, "parent_pid") == parent.pid && role &&
        may_be_its_own(*role)) {
      out.try_emplace(
          *fact->pid,
          EndedChild{.pid = *fact->pid, .parent = parent.pid, .exit = exit_told_by(*fact)});
    }
  }
  return out;
}

/// Searches the output of this process only, not that of its whole rank.
std::optional<Traceback> last_traceback(const model::JobModel& job, pid_t pid) {
  for (const model::Fact* fact : model::facts(job, "child-output")) {
    const auto text = fact->pid == pid ? fact->text("text") : std::nullopt;
    if (text) {
      model::JobModel alone;
      alone.logs.push_back({.rank = fact->rank, .text = *text});
      const auto all = tracebacks(alone);
      return all.empty() ? std::nullopt : std::optional(all.back());
    }
  }
  return std::nullopt;
}

std::optional<model::CallSite> birthplace(const model::JobModel& job, pid_t pid) {
  for (const model::Fact* fact : model::facts(job, "child-started")) {
    if (fact->pid == pid && fact->text("file")) {
      return model::CallSite{.file = *fact->text("file"),
                             .line = static_cast<int>(fact->number("line").value_or(0)),
                             .function = fact->text("function").value_or("")};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<EndedChild> ended_children(const model::JobModel& job, const model::Process& parent) {
  std::vector<EndedChild> out;
  for (const auto& [pid, child] : ended_below(job, parent)) {
    out.push_back(child);
    out.back().traceback = last_traceback(job, pid);
    out.back().born = birthplace(job, pid);
  }
  std::sort(out.begin(), out.end(), [](const EndedChild& a, const EndedChild& b) {
    return std::pair(a.failed(), a.pid) > std::pair(b.failed(), b.pid);
  });
  return out;
}

std::string name_of(const EndedChild& child) {
  return fmt::format("process {}{}", child.pid,
                     child.command.empty() ? std::string() : fmt::format(" ({})", child.command));
}

}  // namespace ddpdoctor::detectors
