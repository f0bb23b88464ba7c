// SPDX-License-Identifier: Apache-2.0
// Evaluates the small DWARF expressions of call-frame information over a thread's registers and
// memory. No loops and a limited number of steps, because the expressions come from untrusted
// files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <elfutils/libdw.h>

#include "collector/stacks/native/cfi_table.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// The result of an expression: an address to read from, a value, or a register number.
struct Location {
  enum class Kind { kAddress, kValue, kRegister };
  Kind kind = Kind::kAddress;
  std::uint64_t number = 0;
};

/// Nothing if a register is unknown, memory is unreadable or the expression is not supported.
std::optional<Location> evaluate(std::span<const Dwarf_Op> expression, const Registers& registers,
                                 std::optional<std::uint64_t> cfa, RemoteMemory& memory);

/// The canonical frame address of a frame with these registers.
std::optional<std::uint64_t> cfa_of(const CfiPlan& plan, const Registers& registers,
                                    RemoteMemory& memory);

/// The same if the stack pointer is unknown: the frame pointer points to where the frame's rules
/// say that the caller's frame pointer is saved.
std::optional<std::uint64_t> cfa_by_frame_pointer(const CfiPlan& plan, const Registers& registers,
                                                  RemoteMemory& memory);

/// The caller's registers. The return address stays unknown if it cannot be read.
Registers caller_registers(const CfiPlan& plan, const Registers& registers, std::uint64_t cfa,
                           RemoteMemory& memory);

}  // namespace ddpdoctor::stacks
