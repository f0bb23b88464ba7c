// SPDX-License-Identifier: Apache-2.0
// Offsets of the interpreter structures that a call site needs, per CPython version (x86-64; from
// each version's own headers).
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

/// -1 = this version has no such field.
struct FrameLayout {
  int minor;
  int thread_frame;   // ≤3.10 and 3.13+
  int thread_cframe;  // 3.11, 3.12
  int cframe_frame;
  int frame_code;
  int frame_instruction;
  int frame_previous;
  int frame_owner;  // 3.12+
  int code_filename;
  int code_name;   // qualified name from 3.11 on
  int code_bytes;  // 3.11+
  int string_ascii;
};

inline constexpr int kOwnedByCStack =
    3;  // lowest frame_owner that is an entry shim, no Python frame

inline constexpr FrameLayout kFrameLayouts[] = {
    {8, 24, -1, -1, 32, 104, 24, -1, 104, 112, -1, 48},
    {9, 24, -1, -1, 32, 104, 24, -1, 104, 112, -1, 48},
    {10, 24, -1, -1, 32, 96, 24, -1, 104, 112, -1, 48},
    {11, -1, 56, 8, 32, 56, 48, -1, 112, 128, 184, 48},
    {12, -1, 56, 0, 0, 56, 8, 70, 112, 128, 192, 40},
    {13, 72, -1, -1, 0, 56, 8, 70, 112, 128, 200, 40},
    {14, 72, -1, -1, 0, 56, 8, 74, 112, 128, 208, 40},
};

}  // namespace ddpdoctor::agent
