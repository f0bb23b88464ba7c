// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/ended_ranks.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::model {
namespace {

using sources::Recording;

/// It recorded more than its existence.
bool took_part(const Recording& recording) {
  return !recording.calls.empty() || !recording.groups.empty();
}

bool has_ended(const Process& process) {
  return process.exit || process.state == 'X' || process.state == 'Z';
}

/// A shell that has RANK in its environment only starts the rank.
bool runs_python(const Recording& recording) {
  const std::string program = recording.command.substr(0, recording.command.find(' '));
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

bool is_below_rank(const Recording& recording, const std::vector<Process>& processes,
                   const std::vector<Recording>& recordings) {
  for (const Process& process : processes) {
    if (process.pid == recording.ppid) {
      return process.rank.has_value();
    }
  }
  return std::any_of(recordings.begin(), recordings.end(), [&recording](const Recording& other) {
    return other.pid == recording.ppid && other.rank && runs_python(other);
  });
}

bool another_is_this_rank(const Recording& recording, const std::vector<Process>& processes,
                          const std::vector<Recording>& recordings) {
  return std::any_of(processes.begin(), processes.end(),
                     [&recording](const Process& process) {
                       return process.pid != recording.pid && process.role == Role::kRank &&
                              process.rank == recording.rank && !has_ended(process);
                     }) ||
         std::any_of(recordings.begin(), recordings.end(), [&recording](const Recording& other) {
           const bool later = other.exit && recording.exit && other.ppid == recording.ppid &&
                              other.exit->time > recording.exit->time;
           return other.pid != recording.pid && other.rank == recording.rank && !other.superseded &&
                  (took_part(other) || later);
         });
}

std::optional<std::string> program_of(const Recording& recording) {
  std::vector<std::string> words;
  for (const std::string_view word : base::split(recording.command, ' ')) {
    words.emplace_back(word);
  }
  return sources::python_target(words);
}

/// True if the other ranks certainly run a different program.
bool runs_something_else(const Recording& recording, const std::vector<Process>& processes,
                         const std::vector<Recording>& recordings) {
  const auto own = program_of(recording);
  bool others = false;
  const auto same = [&own, &others](const std::optional<std::string>& program) {
    others = others || program;
    return program == own;
  };
  for (const Process& process : processes) {
    if (process.role == Role::kRank && process.pid != recording.pid && !has_ended(process) &&
        same(sources::python_target(process.command))) {
      return false;
    }
  }
  for (const Recording& other : recordings) {
    if (other.rank && took_part(other) && same(program_of(other))) {
      return false;
    }
  }
  return others;
}

}  // namespace

bool was_its_rank(const Recording& recording, const std::vector<Process>& processes,
                  const std::vector<Recording>& recordings) {
  if (!recording.rank || recording.superseded) {
    return false;
  }
  if (took_part(recording)) {
    return !recording.forked;
  }
  return !is_below_rank(recording, processes, recordings) &&
         !another_is_this_rank(recording, processes, recordings) &&
         !runs_something_else(recording, processes, recordings);
}

}  // namespace ddpdoctor::model
