// SPDX-License-Identifier: Apache-2.0
// The machine's registers by their DWARF numbers; observed processes run on the same machine as
// ddpdoctor. Everything machine-specific for the unwinder is here and in registers_*.cc.
#pragma once

#include <array>
#include <cstdint>
#include <elf.h>
#include <optional>

#include <sys/user.h>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

#if defined(__x86_64__)

constexpr std::uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";

enum : unsigned {
  kRbx = 3,
  kFramePointer = 6,
  kStackPointer = 7,
  kProgramCounter = 16,
  kRegisterCount = 17
};

/// The register for which a frame's rules give the return address.
constexpr unsigned kReturnAddress = kProgramCounter;

/// The registers that a callee preserves, and the return address: those that a plan restores.
constexpr std::array<unsigned, 8> kRestored{kRbx, kFramePointer, kStackPointer, 12, 13, 14,
                                            15,   kReturnAddress};

/// The registers of a system call's six arguments: rdi rsi rdx r10 r8 r9.
constexpr std::array<unsigned, 6> kSyscallArguments{5, 4, 1, 10, 8, 9};

#elif defined(__aarch64__)

constexpr std::uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "AArch64";

enum : unsigned {
  kFramePointer = 29,
  kReturnAddress = 30,  // the link register
  kStackPointer = 31,
  kProgramCounter = 32,
  kRegisterCount = 33
};

/// The registers that a callee preserves, and the return address: those that a plan restores.
constexpr std::array<unsigned, 13> kRestored{
    19, 20, 21, 22, 23, 24, 25, 26, 27, 28, kFramePointer, kStackPointer, kReturnAddress};

constexpr std::array<unsigned, 6> kSyscallArguments{0, 1, 2, 3, 4, 5};

#else
#error "the unwinder knows x86-64 and AArch64"
#endif

/// The known registers of one frame; a sleeping thread that was not stopped shows only some.
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
    known_ |= std::uint64_t{1} << number;
  }

 private:
  std::array<std::uint64_t, kRegisterCount> values_{};
  std::uint64_t known_ = 0;
};

/// The registers of a stopped thread in the kernel's structure.
Registers registers_of(const user_regs_struct& raw);

/// Removes the pointer-authentication signature from the upper bits of a return address.
std::uint64_t without_signature(std::uint64_t return_address);

/// The caller of a frame that has a frame pointer but no call-frame information; the caller's stack
/// pointer stays unknown if the machine does not imply it.
std::optional<Registers> caller_by_frame_pointer(const Registers& registers, RemoteMemory& stack);

/// The caller after a call through a bad pointer.
std::optional<Registers> caller_of_bad_call(const Registers& registers, RemoteMemory& stack);

/// The registers that a signal interrupted, if the frame is the signal return code and has no
/// call-frame information (AArch64's kernel removed it).
std::optional<Registers> interrupted_by_signal(const Registers& registers, RemoteMemory& code,
                                               RemoteMemory& stack);

}  // namespace ddpdoctor::stacks
