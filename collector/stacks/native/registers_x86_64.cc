// SPDX-License-Identifier: Apache-2.0
// x86-64: the return address is on the stack, a frame pointer points to { caller's, return address
// }, and glibc's signal return has call-frame information.
#include "collector/stacks/native/registers.h"

namespace ddpdoctor::stacks {

Registers registers_of(const user_regs_struct& raw) {
  const std::array<std::uint64_t, kRegisterCount> in_dwarf_order{
      raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp, raw.r8,
      raw.r9,  raw.r10, raw.r11, raw.r12, raw.r13, raw.r14, raw.r15, raw.rip};
  Registers registers;
  for (std::size_t i = 0; i < in_dwarf_order.size(); ++i) {
    registers.set(i, in_dwarf_order.at(i));
  }
  return registers;
}

std::uint64_t without_signature(std::uint64_t return_address) {
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
  Registers caller;  // the frame's other saved registers are unknown
  caller.set(kFramePointer, *saved);
  caller.set(kStackPointer, frame + 16);
  caller.set(kProgramCounter, *target);
  return caller;
}

std::optional<Registers> caller_of_bad_call(const Registers& registers, RemoteMemory& stack) {
  const RemoteAddress top = registers[kStackPointer];
  const auto target = stack.get<RemoteAddress>(top);
  if (!target) {
    return std::nullopt;
  }
  Registers caller = registers;
  caller.set(kProgramCounter, *target);
  caller.set(kStackPointer, top + 8);
  return caller;
}

std::optional<Registers> interrupted_by_signal(const Registers&, RemoteMemory&, RemoteMemory&) {
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
