// SPDX-License-Identifier: Apache-2.0
// Every pointer is read through the kernel until its type is verified. Neighbours of the used
// fields are checked, too (the strings and bytes of a code object are adjacent): a layout shifted
// by one field fails.
#include "agent/record/python_proof.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <pthread.h>

#include "agent/record/safe_read.h"
#include "wire/layout.h"

namespace ddpdoctor::agent {
namespace {

constexpr int kObjectType = 8;   // PyObject.ob_type
constexpr int kObjectSize = 16;  // PyVarObject.ob_size, PyASCIIObject.length
constexpr int kStringState = 32;
constexpr std::uint32_t kCompactAscii = 0x60;
constexpr std::uint64_t kInstruction = 2;  // bytes of a code unit
constexpr std::uint64_t kMostBytecode = 1U << 28;
constexpr std::uint8_t kLastOwner = 4;  // FRAME_OWNED_BY_INTERPRETER, 3.14

class Frames {
 public:
  Frames(const FrameLayout& layout, const PythonSymbols& python, SafeRead& memory)
      : layout_(layout), python_(python), memory_(memory) {}

  /// Address of the innermost frame, 0 if there is none; false if the thread does not match the
  /// layout.
  bool innermost(std::uint64_t state, std::uint64_t& frame);
  bool is_shim(std::uint64_t frame, bool& shim);
  bool is_python(std::uint64_t frame);
  bool previous(std::uint64_t frame, std::uint64_t& before) {
    return at(frame, layout_.frame_previous, before);
  }

 private:
  template <typename T>
  bool at(std::uint64_t base, int offset, T& into) {
    return memory_.value(base + static_cast<std::uint64_t>(offset), into);
  }
  bool has_type(std::uint64_t object, const void* type) {
    std::uint64_t found = 0;
    return object != 0 && at(object, kObjectType, found) &&
           found == reinterpret_cast<std::uint64_t>(type);
  }
  /// The field at `offset` points to an object of this type.
  bool field_has_type(std::uint64_t base, int offset, const void* type) {
    std::uint64_t object = 0;
    return at(base, offset, object) && has_type(object, type);
  }
  bool is_text(std::uint64_t string);
  bool is_code(std::uint64_t code);
  bool runs_in(std::uint64_t frame, std::uint64_t code);

  const FrameLayout& layout_;
  const PythonSymbols& python_;
  SafeRead& memory_;
};

bool Frames::innermost(std::uint64_t state, std::uint64_t& frame) {
  std::uint64_t thread = 0;
  if (!at(state, layout_.thread_ident, thread) || thread != pthread_self()) {
    return false;
  }
  if (layout_.thread_cframe < 0) {
    return at(state, layout_.thread_frame, frame);
  }
  std::uint64_t cframe = 0;
  frame = 0;
  return at(state, layout_.thread_cframe, cframe) &&
         (cframe == 0 || at(cframe, layout_.cframe_frame, frame));
}

bool Frames::is_shim(std::uint64_t frame, bool& shim) {
  std::uint8_t owner = 0;
  if (layout_.frame_owner >= 0 && (!at(frame, layout_.frame_owner, owner) || owner > kLastOwner)) {
    return false;
  }
  shim = owner >= kOwnedByCStack;
  return true;
}

/// Text that is not plain ASCII is never read, so only its type counts.
bool Frames::is_text(std::uint64_t string) {
  std::uint32_t state = 0;
  std::uint64_t length = 0;
  if (!has_type(string, python_.string_type) || !at(string, kStringState, state) ||
      !at(string, kObjectSize, length)) {
    return false;
  }
  if ((state & kCompactAscii) != kCompactAscii) {
    return true;
  }
  char text[1024];
  if (length >= sizeof text) {
    return length < kMostBytecode;
  }
  if (!memory_.bytes(string + static_cast<std::uint64_t>(layout_.string_ascii), text, length + 1) ||
      text[length] != 0 || strlen(text) != length) {
    return false;
  }
  for (std::uint64_t i = 0; i < length; ++i) {
    if (static_cast<unsigned char>(text[i]) >= 0x80) {
      return false;
    }
  }
  return true;
}

bool Frames::is_code(std::uint64_t code) {
  std::int32_t first_line = 0;
  if (!has_type(code, python_.code_type) || !at(code, layout_.code_first_line, first_line) ||
      !field_has_type(code, layout_.code_line_table, python_.bytes_type)) {
    return false;
  }
  constexpr int kPointer = 8;
  for (int field = layout_.code_filename; field <= layout_.code_name; field += kPointer) {
    std::uint64_t string = 0;
    if (!at(code, field, string) || !is_text(string)) {
      return false;
    }
  }
  // Verified by the interpreter: the position before the first instruction has the first line.
  return python_.line_of(reinterpret_cast<void*>(code), -1) == first_line;
}

/// The frame's current instruction is in this code.
bool Frames::runs_in(std::uint64_t frame, std::uint64_t code) {
  std::uint64_t units = 0;
  if (layout_.code_text >= 0) {
    std::uint64_t text = 0;
    std::int32_t last = 0;
    return at(code, layout_.code_text, text) && has_type(text, python_.bytes_type) &&
           at(text, kObjectSize, units) && units < kMostBytecode &&
           at(frame, layout_.frame_instruction, last) && last >= -1 &&
           last < static_cast<std::int32_t>(units);
  }
  std::uint64_t instruction = 0;
  if (!at(code, kObjectSize, units) || units == 0 || units > kMostBytecode ||
      !at(frame, layout_.frame_instruction, instruction)) {
    return false;
  }
  const std::uint64_t first = code + static_cast<std::uint64_t>(layout_.code_bytes);
  // a frame that has not begun is before its first instruction
  return instruction % kInstruction == 0 && instruction + kInstruction >= first &&
         instruction < first + units * kInstruction;
}

bool Frames::is_python(std::uint64_t frame) {
  constexpr int kFramesAreObjects = 10;  // up to 3.10
  if (layout_.minor <= kFramesAreObjects && !has_type(frame, python_.frame_type)) {
    return false;
  }
  std::uint64_t code = 0;
  if (!at(frame, layout_.frame_code, code)) {
    return false;
  }
  code = untagged(layout_, code);
  return is_code(code) && runs_in(frame, code);
}

}  // namespace

Verdict frames_are_as(const FrameLayout& layout, const PythonSymbols& python, const void* state) {
  const int saved_errno = errno;
  SafeRead memory;
  Frames frames(layout, python, memory);
  std::uint64_t frame = 0;
  Verdict verdict = Verdict::kSaysNothing;
  if (memory.possible() && !frames.innermost(reinterpret_cast<std::uint64_t>(state), frame)) {
    verdict = Verdict::kFails;
  }
  std::uint32_t depth = 0;
  for (std::uint32_t links = 0; frame != 0 && depth < wire::kSiteDepth; ++links) {
    bool shim = false;
    if (links >= kMostLinks || !frames.is_shim(frame, shim) ||
        (!shim && !frames.is_python(frame)) || !frames.previous(frame, frame)) {
      verdict = Verdict::kFails;
      break;
    }
    depth += shim ? 0 : 1;
    verdict = depth > 1 ? Verdict::kHolds : depth == 1 ? Verdict::kHoldsOnce : verdict;
  }
  errno = saved_errno;
  return verdict;
}

}  // namespace ddpdoctor::agent
