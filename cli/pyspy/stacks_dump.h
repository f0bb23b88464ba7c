// SPDX-License-Identifier: Apache-2.0
// Python stacks in the text and JSON formats of `py-spy dump`, for programs that parse them.
#pragma once

#include <string>
#include <vector>

#include "collector/monitor/python_dump.h"

namespace ddpdoctor::cli {

struct DumpStyle {
  bool full_filenames = false;
  bool locals = false;  // locals of torch.distributed's own frames, as far as read
};

std::string dump_as_text(const std::vector<monitor::DumpedProcess>& processes,
                         const DumpStyle& style);
std::string dump_as_json(const std::vector<monitor::DumpedProcess>& processes,
                         const DumpStyle& style);

/// The file name relative to the folder that contains its outermost package:
/// torch/nn/modules/module.py. `pid` gives access to the process's own files.
std::string short_filename(const std::string& file, pid_t pid);

}  // namespace ddpdoctor::cli
