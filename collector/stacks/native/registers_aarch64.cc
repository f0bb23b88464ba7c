// SPDX-License-Identifier: Apache-2.0
// AArch64: the return address is in the link register until a function saves it, possibly signed. A
// frame pointer points to { caller's, return address } at the bottom of a frame, so the caller's
// stack pointer is unknown. The kernel's signal return has no call-frame information.
#include <csignal>
#include <cstddef>

#include <sys/ucontext.h>

#include "collector/stacks/native/registers.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kGeneral = 31;  // x0 to x30

/// struct rt_sigframe of the kernel (arch/arm64/kernel/signal.c).
struct SignalFrame {
  siginfo_t info;
  ucontext_t context;
};

}  // namespace

Registers registers_of(const user_regs_struct& raw) {
  Registers registers;
  for (std::size_t i = 0; i < kGeneral; ++i) {
    registers.set(i, raw.regs[i]);
  }
  registers.set(kStackPointer, raw.sp);
  registers.set(kProgramCounter, raw.pc);
  return registers;
}

std::uint64_t without_signature(std::uint64_t return_address) {
  // xpaclri: only the processor knows which bits the signature has; it does nothing on processors
  // without signatures.
  asm("mov x30, %0\n\thint #7\n\tmov %0, x30" : "+r"(return_address) : : "x30");
  return return_address;
}

std::optional<Registers> caller_by_frame_pointer(const Registers& registers, RemoteMemory& stack) {
  if (!registers.known(kFramePointer) || registers[kFramePointer] < registers[kStackPointer]) {
    return std::nullopt;
  }
  const RemoteAddress frame = registers[kFramePointer];
  const auto saved = stack.get<RemoteAddress>(frame);
  const auto target = stack.get<RemoteAddress>(frame + 8);
  if (!saved || !target) {
    return std::nullopt;
  }
  Registers caller;
  caller.set(kFramePointer, *saved);
  caller.set(kProgramCounter, without_signature(*target));
  return caller;
}

std::optional<Registers> caller_of_bad_call(const Registers& registers, RemoteMemory&) {
  if (!registers.known(kReturnAddress)) {
    return std::nullopt;
  }
  Registers caller = registers;
  caller.set(kProgramCounter, without_signature(registers[kReturnAddress]));
  return caller;
}

std::optional<Registers> interrupted_by_signal(const Registers& registers, RemoteMemory& code,
                                               RemoteMemory& stack) {
  // mov x8, #139 (rt_sigreturn); svc #0
  constexpr std::array<std::uint32_t, 2> kSignalReturn{0xd2801168, 0xd4000001};
  if (code.get<std::array<std::uint32_t, 2>>(registers[kProgramCounter]) != kSignalReturn) {
    return std::nullopt;
  }
  const RemoteAddress saved = registers[kStackPointer] + offsetof(SignalFrame, context) +
                              offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, regs);
  const auto values = stack.get<std::array<std::uint64_t, kGeneral + 2>>(saved);
  if (!values) {
    return std::nullopt;
  }
  Registers interrupted;  // x0 to x30, the stack pointer and the program counter, in this order
  for (std::size_t i = 0; i < values->size(); ++i) {
    interrupted.set(i, values->at(i));
  }
  return interrupted;
}

}  // namespace ddpdoctor::stacks
