// SPDX-License-Identifier: Apache-2.0
// Reads a text file of any kind into a JobModel: stack dumps of every tool, logs, and mixtures,
// even with a rank or time before each line. Text that no reader recognizes stays in the log, in
// its order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The kind of a file by its beginning; the path counts only if the beginning is ambiguous.
bool is_py_spy(std::string_view head, std::string_view path);
bool is_py_spy_json(std::string_view head, std::string_view path);
bool is_pystack(std::string_view head, std::string_view path);
bool is_gdb(std::string_view head, std::string_view path);
bool is_lldb(std::string_view head, std::string_view path);
bool is_sample(std::string_view head, std::string_view path);
bool is_eu_stack(std::string_view head, std::string_view path);
bool is_faulthandler(std::string_view head, std::string_view path);
bool is_austin(std::string_view head, std::string_view path);
/// Stacks that a program prints of its own threads.
bool is_printed_stacks(std::string_view head, std::string_view path);
/// A table of `ps` or `top`.
bool is_process_table(std::string_view head, std::string_view path);
/// Output of a job: tracebacks, rank prefixes, messages of torch and NCCL.
bool is_log(std::string_view head, std::string_view path);

/// Printable text, and no document such as JSON, XML or PDF.
bool is_plain_text(std::string_view text);

/// Some line reports an error or a warning. A user who names such a file wants it read.
bool tells_of_trouble(std::string_view text);

/// It has a line with a shell's prompt and a command: a copy of a terminal.
bool is_terminal_copy(std::string_view text);

/// Everything recognized in the text. Never refuses: at worst the result is a log without findings.
base::Result<model::JobModel> read_text(std::string_view bytes, const std::string& path);

/// Removes zero bytes at both ends: a log that was truncated while it was written, or whose machine
/// crashed, contains a run of them.
std::string_view without_padding(std::string_view text);

/// For an empty file named like the output of a rank: that rank wrote nothing. Absent if the name
/// contains no rank.
std::optional<model::JobModel> read_empty_log(const std::string& path);

/// Reads an array of py-spy dump --json.
base::Result<model::JobModel> read_py_spy_dump(std::string_view bytes, const std::string& path);

}  // namespace ddpdoctor::imports
