// SPDX-License-Identifier: Apache-2.0
// Evaluates the small DWARF expressions of call-frame information over a thread's registers and
// memory. No loops, bounded steps: the expressions come from files we do not trust.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <elfutils/libdw.h>

#include "collector/stacks/native/cfi_table.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// Register values of one frame; a sleeping thread that was not stopped shows only some.
class Registers {
 public:
  [[nodiscard]] bool known(std::uint64_t number) const {
    return number < kRegisterCount && ((known_ >> number) & 1U) != 0;
  }
  /// Value of a known register.
  [[nodiscard]] std::uint64_t operator[](std::size_t number) const {
    return values_.at(number);
  }
  void set(std::size_t number, std::uint64_t value) {
    values_.at(number) = value;
    known_ |= 1U << number;
  }

 private:
  std::array<std::uint64_t, kRegisterCount> values_{};
  std::uint32_t known_ = 0;
};

/// What an expression yields: an address to read from, a value, or the number of a register.
struct Location {
  enum class Kind { kAddress, kValue, kRegister };
  Kind kind = Kind::kAddress;
  std::uint64_t number = 0;
};

/// Nothing when a register is unknown, memory is unreadable or the expression is not understood.
std::optional<Location> evaluate(std::span<const Dwarf_Op> expression, const Registers& registers,
                                 std::optional<std::uint64_t> cfa, RemoteMemory& memory);

/// The canonical frame address of a frame with these registers.
std::optional<std::uint64_t> cfa_of(const CfiPlan& plan, const Registers& registers,
                                    RemoteMemory& memory);

/// The caller's registers. The return address stays unknown when it cannot be read.
Registers caller_registers(const CfiPlan& plan, const Registers& registers, std::uint64_t cfa,
                           RemoteMemory& memory);

}  // namespace ddpdoctor::stacks
