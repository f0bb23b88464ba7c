// SPDX-License-Identifier: Apache-2.0
// One reader per tool that prints stacks. Each gets the cursor at some line: if a dump of its tool
// begins there, it reads the dump and returns true; otherwise it leaves the cursor unchanged.
// Nothing is refused: a line that does not match ends the dump.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// `py-spy dump`, plain, --native and --locals; with --subprocesses, one process after the other.
bool read_py_spy(Lines& lines, std::vector<StackDump>& out);

/// `Thread 71 (idle): "MainThread"`: the first line of a dump if "Process 71: …" was not copied.
bool is_py_spy_thread(std::string_view line);

/// "    all_reduce (torch/distributed/distributed_c10d.py:3252)", "    clone3 (libc.so.6)".
std::optional<model::Frame> py_spy_frame(std::string_view line);

/// Frames of py-spy alone, without the line that names their thread.
bool read_unheaded_py_spy(Lines& lines, std::vector<StackDump>& out);
/// The text has several such frames in succession.
bool has_unheaded_stack(std::string_view head);

/// `py-spy dump --json`, one or several consecutive documents. Refuses other documents.
base::Result<std::vector<StackDump>> read_py_spy_json(std::string_view text,
                                                      const std::string& name);

/// `pystack remote` and `pystack core`, with --native, --native-all and --locals.
bool read_pystack(Lines& lines, std::vector<StackDump>& out);

/// gdb's `thread apply all bt`, with and without symbols, and py-bt of python-gdb.py.
bool read_gdb(Lines& lines, std::vector<StackDump>& out);

/// gdb's `bt` of one thread, without a heading.
bool is_bare_backtrace(std::string_view head);

/// lldb's `thread backtrace all` (`bt all`) and `bt`.
bool read_lldb(Lines& lines, std::vector<StackDump>& out);

/// A thread of lldb with its first frame.
bool is_lldb_backtrace(std::string_view head);

/// `sample PID` of macOS.
bool read_sample(Lines& lines, std::vector<StackDump>& out);

/// Its first line.
bool is_sample_title(std::string_view line);

/// `eu-stack -p PID`, also with -s, -m, -i, -b.
bool read_eu_stack(Lines& lines, std::vector<StackDump>& out);

/// Python's faulthandler: dump_traceback, dump_traceback_later, register, and fatal errors.
bool read_faulthandler(Lines& lines, std::vector<StackDump>& out);

/// `File "/srv/train.py", line 57 in main`, also without its indentation; no other tool writes it.
std::optional<model::Frame> faulthandler_frame(std::string_view line);

/// Frames of faulthandler alone, without the line that names their thread.
bool read_unheaded_faulthandler(Lines& lines, std::vector<StackDump>& out);

/// Samples of austin, as text.
bool read_austin(Lines& lines, std::vector<StackDump>& out);

bool is_austin_sample(std::string_view line);

/// Stacks that a program prints of its own threads with traceback.print_stack().
bool read_printed_stacks(Lines& lines, std::vector<StackDump>& out);

/// "-- Stack for thread 1403 --": a line that may be above such a stack.
bool is_printed_heading(std::string_view line);

}  // namespace ddpdoctor::imports
