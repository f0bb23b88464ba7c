// SPDX-License-Identifier: Apache-2.0
// Frames of one thread: first their raw chain (while the thread does not run), then, at any later
// time, their meaning.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/native/line_table.h"
#include "collector/stacks/python/iterators.h"
#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/offsets.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// An address without the tag bits that 3.14 stores in references.
RemoteAddress untagged(RemoteAddress reference, std::int32_t version);

/// The chain of frames of a thread state, innermost first, at most 2000; cycles end the walk.
RawPythonStack read_python_stack(RemoteMemory& memory, const PythonLayout& layout,
                                 RemoteAddress thread_state);

/// One frame by its address, for a coroutine that no thread runs. Nothing if it cannot be read.
std::optional<RawPythonFrame> read_python_frame(RemoteMemory& memory, const PythonLayout& layout,
                                                RemoteAddress address);

/// True for functions whose locals explain a wait: torch.distributed, and waits of the standard
/// library and of torch.
bool locals_wanted(std::string_view file, std::string_view function);

/// Decodes raw frames; caches code objects, which do not change.
class FrameDecoder {
 public:
  /// All references must outlive this.
  FrameDecoder(RemoteMemory& memory, const PythonLayout& layout, PythonObjects& objects)
      : memory_(memory), layout_(layout), objects_(objects), iterations_(objects) {}

  /// Omits frames that Python itself does not show (not yet begun, __init__ trampolines).
  std::vector<PythonFrame> decode(const RawPythonStack& stack);
  /// A position in a code object; `lasti` is in bytes for all versions. Nothing if it is not a code
  /// object.
  std::optional<Frame> decode_code(RemoteAddress address, int lasti);
  /// The object of a local of this frame; 0 = none, or the locals of this function are not wanted.
  RemoteAddress local(const RawPythonFrame& frame, std::string_view name);

 private:
  struct Code {
    bool valid = false;
    std::string function;
    std::string file;
    int first_line = 0;
    int first_traceable = 0;
    std::vector<std::byte> lines;
    bool locals_wanted = false;
    std::vector<std::string> local_names;
    std::vector<bool> local_is_cell;
  };

  const Code& code_at(RemoteAddress address);
  /// Fetches what code_at reads of the stack's code objects together.
  void expect_codes(const RawPythonStack& stack);
  void read_local_names(RemoteAddress address, Code& code);
  void append_names(RemoteAddress tuple, bool cells, Code& code);
  [[nodiscard]] std::int64_t offset_in_code(const RawPythonFrame& frame) const;
  [[nodiscard]] SourceRange place(const Code& code, std::int64_t offset) const;
  std::vector<std::pair<std::string, std::string>> locals(const RawPythonFrame& frame,
                                                          const Code& code);

  RemoteMemory& memory_;
  const PythonLayout& layout_;
  PythonObjects& objects_;
  IterationReader iterations_;
  std::map<RemoteAddress, Code> codes_;
};

}  // namespace ddpdoctor::stacks
