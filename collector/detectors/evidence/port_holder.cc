// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/port_holder.h"

#include <algorithm>
#include <set>

#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The program that a Python command runs: "train.py", "pkg.train".
std::string program_of(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i].ends_with(".py")) {
      return command[i].substr(command[i].rfind('/') + 1);
    }
    if (command[i] == "-m" && i + 1 < command.size()) {
      return command[i + 1];
    }
  }
  return {};
}

std::set<std::string> programs_of_ranks(const model::JobModel& job) {
  std::set<std::string> programs;
  for (const model::Process* process : processes(job)) {
    if (process->role == model::Role::kRank) {
      programs.insert(program_of(process->command));
    }
  }
  programs.erase("");
  return programs;
}

}  // namespace

std::optional<PortHolder> port_holder(const model::JobModel& job, const model::Fact& listen) {
  const auto pid = pid_field(listen, "listener_pid");
  if (!listen.flag("local").value_or(false) || listen.flag("listener_in_job") != false || !pid) {
    return std::nullopt;
  }
  PortHolder holder{.pid = *pid, .command = listen.text("listener_command").value_or("unknown")};
  const std::set<std::string> programs = programs_of_ranks(job);
  holder.foreign =
      !programs.empty() &&
      std::none_of(programs.begin(), programs.end(), [&holder](const std::string& program) {
        return holder.command.find(program) != std::string::npos;
      });
  return holder;
}

bool stranger_holds_port(const model::JobModel& job) {
  const auto listens = model::facts(job, "listen");
  return std::any_of(listens.begin(), listens.end(), [&job](const model::Fact* listen) {
    const auto holder = port_holder(job, *listen);
    return holder && holder->foreign;
  });
}

}  // namespace ddpdoctor::detectors
