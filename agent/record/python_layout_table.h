// SPDX-License-Identifier: Apache-2.0
// Offsets of the interpreter structures that a call site needs, per CPython version (x86-64; from
// each version's own headers, as in collector/stacks/python/offsets.cc). A row is only an
// assumption: python_proof.h verifies it on the caller's own frames before it is used.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

/// -1 = this version has no such field.
struct FrameLayout {
  int minor;
  int thread_ident;
  int thread_frame;   // ≤3.10 and 3.13+
  int thread_cframe;  // 3.11, 3.12
  int cframe_frame;
  int frame_code;
  int frame_instruction;
  int frame_previous;
  int frame_owner;  // 3.12+
  int code_first_line;
  int code_filename;
  int code_name;        // the qualified name since 3.11
  int code_line_table;  // a bytes object
  int code_text;        // ≤3.10: the bytecode, a bytes object
  int code_bytes;       // 3.11+: the bytecode itself
  int string_ascii;
};

inline constexpr int kOwnedByCStack =
    3;  // lowest frame_owner that means an entry shim and not a Python frame

/// Limit of followed frames and shims; a longer chain is invalid.
inline constexpr std::uint32_t kMostLinks = 4 * 24;

/// A frame's code object: since 3.14 references have tags in their low bits.
constexpr std::uint64_t untagged(const FrameLayout& layout, std::uint64_t code) {
  constexpr int kFirstTagged = 14;
  return layout.minor >= kFirstTagged ? code & ~std::uint64_t{3} : code;
}

inline constexpr FrameLayout kFrameLayouts[] = {
    {8, 176, 24, -1, -1, 32, 104, 24, -1, 40, 104, 112, 120, 48, -1, 48},
    {9, 176, 24, -1, -1, 32, 104, 24, -1, 40, 104, 112, 120, 48, -1, 48},
    {10, 176, 24, -1, -1, 32, 96, 24, -1, 40, 104, 112, 120, 48, -1, 48},
    {11, 152, -1, 56, 8, 32, 56, 48, -1, 72, 112, 128, 136, -1, 184, 48},
    {12, 136, -1, 56, 0, 0, 56, 8, 70, 68, 112, 128, 136, -1, 192, 40},
    {13, 152, 72, -1, -1, 0, 56, 8, 70, 68, 112, 128, 136, -1, 200, 40},
    {14, 152, 72, -1, -1, 0, 56, 8, 74, 68, 112, 128, 136, -1, 208, 40},
    {15, 176, 72, -1, -1, 0, 56, 8, 74, 68, 112, 128, 136, -1, 208, 40},
};

}  // namespace ddpdoctor::agent
