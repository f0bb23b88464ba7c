// SPDX-License-Identifier: Apache-2.0
// Python stacks as `py-spy dump` prints them: its text and its JSON, for programs that read them.
#pragma once

#include <string>
#include <vector>

#include "collector/monitor/python_dump.h"

namespace ddpdoctor::cli {

struct DumpStyle {
  bool full_filenames = false;
  bool locals = false;  // those that were read: of torch.distributed's own frames
};

std::string dump_as_text(const std::vector<monitor::DumpedProcess>& processes,
                         const DumpStyle& style);
std::string dump_as_json(const std::vector<monitor::DumpedProcess>& processes,
                         const DumpStyle& style);

/// The file as it is seen from the folder that holds its outermost package:
/// torch/nn/modules/module.py. `pid` leads to the process's own files.
std::string short_filename(const std::string& file, pid_t pid);

}  // namespace ddpdoctor::cli
