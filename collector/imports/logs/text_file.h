// SPDX-License-Identifier: Apache-2.0
// A text file of any kind → JobModel: stack dumps of every tool, logs, and both mixed, also with a
// rank or a time before each line. What no reader knows stays in the log, in its order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// What a file is, by its beginning; a path helps only where the beginning says nothing.
bool is_py_spy(std::string_view head, std::string_view path);
bool is_py_spy_json(std::string_view head, std::string_view path);
bool is_pystack(std::string_view head, std::string_view path);
bool is_gdb(std::string_view head, std::string_view path);
bool is_eu_stack(std::string_view head, std::string_view path);
bool is_faulthandler(std::string_view head, std::string_view path);
/// Output of a job: tracebacks, ranks before lines, messages of torch and NCCL.
bool is_log(std::string_view head, std::string_view path);

/// Some line of a text tells of an error or a warning. Who names such a file wants it read.
bool tells_of_trouble(std::string_view text);

/// Everything that is known in the text. Never refuses: at worst it is a log that says nothing.
base::Result<model::JobModel> read_text(std::string_view bytes, const std::string& path);

/// Without zero bytes at either end: a log that was truncated while it was written, or whose
/// machine crashed, has a run of them.
std::string_view without_padding(std::string_view text);

/// What an empty file says that is named like the output of a rank: the rank wrote nothing. Absent
/// where the name tells no rank.
std::optional<model::JobModel> read_empty_log(const std::string& path);

/// An array of py-spy dump --json.
base::Result<model::JobModel> read_py_spy_dump(std::string_view bytes, const std::string& path);

}  // namespace ddpdoctor::imports
