// SPDX-License-Identifier: Apache-2.0
// Process tables in a text: `ps -ef`, `ps aux`, `ps ax`, `ps -o …`, `ps -eLf`, `top`, and trees of
// `ps --forest`. They show the parents of dumped processes, and so which were forked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

struct ProcessRow {
  pid_t pid = 0;
  std::optional<pid_t> ppid;
  char state = '?';
  std::string wchan;
  std::string command;
};

std::vector<ProcessRow> process_rows(std::span<const std::string_view> lines);

}  // namespace ddpdoctor::imports
