// SPDX-License-Identifier: Apache-2.0
// The frames that gdb prints for one thread: bt, and py-bt of python-gdb.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

constexpr std::string_view kPyBt = "Traceback (most recent call first):";

/// "#3  0x00007f26 in poll () …": a frame of bt.
bool begins_gdb_frame(std::string_view line);

/// The line continues the frame above it: gdb does not break lines, but pagers and mailers do.
bool continues_gdb_frame(std::string_view line);

/// A line of py-bt for Python 2.6, which numbers frames and has no line numbers.
bool is_old_py_bt(std::string_view line);

/// "#7 Frame 0x7f, for file train.py, line 12, in main ()" of py-bt-full, the Python frame alone.
bool is_full_py_bt(std::string_view line);

/// "#0  0x00007f26 in poll () from …", "#1  …": bt of one thread, without a heading.
bool begins_bare_bt(const Lines& lines);

/// "#4  0x00007f26 in poll () from …", "#5  0x…": a bt whose first frames were not copied.
bool begins_cut_bt(const Lines& lines);

/// "#7 Frame 0x…, for file train.py, line 12, in main ()" twice: py-bt-full, without a heading.
bool begins_full_py_bt(const Lines& lines);

/// "---Type <return> to continue, or q <return> to quit---": gdb's pager, in the middle of a stack.
bool is_gdb_pager(std::string_view line);

/// "#3  0x00007f26 in c10d::Work::wait(long) () from /usr/lib/libtorch_cpu.so", also without
/// "#3".
model::Frame native_frame(std::string_view line);

/// One bt at the cursor. It replaces the native frames of the thread if it shows more of them: gdb
/// prints the current frame alone after `thread 2` and `frame 1`. `dump` gets the source lines of
/// py-bt-full. Returns the address of the mutex that the thread waits for: "0x55e0".
std::optional<std::string> read_gdb_bt(Lines& lines, model::Thread& thread, StackDump& dump);

/// py-bt at the cursor, most recent call first. Its frames replace the interpreter's own frames.
void read_py_bt(Lines& lines, model::Thread& thread, StackDump& dump);

}  // namespace ddpdoctor::imports
