// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/frame_pointer_solver.h"

namespace ddpdoctor::stacks {

namespace {

constexpr RemoteAddress kSearchBytes = 65536;
constexpr std::size_t kLongestCall = 7;

unsigned at(std::span<const std::byte> code, std::size_t index) {
  return std::to_integer<unsigned>(code[index]);
}

/// The signed 32-bit displacement at `index`, added to `base`.
RemoteAddress relative(std::span<const std::byte> code, std::size_t index, RemoteAddress base) {
  std::int32_t displacement = 0;
  std::memcpy(&displacement, code.data() + index, sizeof(displacement));
  return base + static_cast<std::uint64_t>(std::int64_t{displacement});
}

std::span<const std::byte> code_at(Target& target, RemoteAddress address, std::size_t length) {
  const auto object = target.object_at(address);
  return object ? object->file->at(address - object->bias, length) : std::span<const std::byte>{};
}

/// The target of a PLT stub at `address`: [endbr64] [bnd] jmp *slot(%rip).
std::optional<RemoteAddress> plt_target(Target& target, RemoteAddress address) {
  constexpr std::size_t kStub = 11;
  const auto code = code_at(target, address, kStub);
  if (code.empty()) {
    return std::nullopt;
  }
  std::size_t index = 0;
  if (at(code, 0) == 0xf3 && at(code, 1) == 0x0f && at(code, 2) == 0x1e && at(code, 3) == 0xfa) {
    index = 4;
  }
  if (at(code, index) == 0xf2) {
    ++index;
  }
  if (index + 6 > code.size() || at(code, index) != 0xff || at(code, index + 1) != 0x25) {
    return std::nullopt;
  }
  return target.memory().get<RemoteAddress>(relative(code, index + 2, address + index + 6));
}

/// call *reg, call *disp(reg) …: opcode ff with 2 in the middle of its second byte, 2 to 7 bytes
/// long.
bool is_indirect_call(std::span<const std::byte> code) {
  for (std::size_t length = 2; length <= kLongestCall; ++length) {
    const std::size_t index = kLongestCall - length;
    if (at(code, index) == 0xff && (at(code, index + 1) & 0x38U) == 0x10) {
      return true;
    }
  }
  return false;
}

/// No call precedes a return address into a signal trampoline.
bool is_signal_return(Target& target, RemoteAddress address) {
  const auto object = target.object_at(address);
  const CfiPlan* const plan =
      object ? cfi_of(*object->file).plan_at(address - object->bias) : nullptr;
  return plan != nullptr && plan->signal;
}

struct Candidate {
  RemoteAddress frame_pointer = 0;
  CallBefore call = CallBefore::kNone;
};

/// True if the function that starts at `from` ends in a jump to `to`: the call before the return
/// address is to `from`, but the frame belongs to `to`.
bool tail_calls(Target& target, RemoteAddress from, RemoteAddress to) {
  constexpr std::size_t kJump = 5;
  constexpr std::size_t kLongest = 512;
  const auto object = target.object_at(from);
  if (!object) {
    return false;
  }
  const CfiTable& table = cfi_of(*object->file);
  const std::uint64_t start = from - object->bias;
  for (std::size_t offset = 0; offset < kLongest; ++offset) {
    const auto code = object->file->at(start + offset, kJump);
    if (code.empty()) {
      return false;
    }
    if (at(code, 0) == 0xe9 && relative(code, 1, from + offset + kJump) == to) {
      return table.function_start(start + offset) == start;
    }
  }
  return false;
}

/// Values of rbp, from the stack pointer upwards, with which the frame's return address follows a
/// call.
std::vector<Candidate> candidates(Walk& walk, const UnsolvedFrame& frame, RemoteAddress function) {
  constexpr std::size_t kMaxCandidates = 64;
  constexpr RemoteAddress kLowestCode = 0x10000;
  constexpr RemoteAddress kUserSpaceEnd = RemoteAddress{1} << 47U;
  std::vector<Candidate> found;
  const RemoteAddress top = frame.registers[kStackPointer];
  const Mapping* const stack = walk.target.maps().find(top);
  const RemoteAddress end = std::min(top + kSearchBytes, stack == nullptr ? top : stack->end);
  Registers guess = frame.registers;
  for (RemoteAddress value = top & ~RemoteAddress{7}; value < end && found.size() < kMaxCandidates;
       value += 8) {
    guess.set(kFramePointer, value);
    const auto cfa = cfa_of(frame.plan, guess, walk.stack);
    if (!cfa || *cfa <= top || *cfa > end) {
      continue;
    }
    const auto return_address = walk.stack.get<RemoteAddress>(*cfa - 8);
    if (!return_address || *return_address < kLowestCode || *return_address >= kUserSpaceEnd) {
      continue;
    }
    const CallBefore call = call_before(walk.target, *return_address, function);
    if (call != CallBefore::kNone) {
      found.push_back({.frame_pointer = value, .call = call});
    }
  }
  return found;
}

}  // namespace

CallBefore call_before(Target& target, RemoteAddress return_address, RemoteAddress function) {
  const Mapping* const mapping = target.maps().find(return_address);
  if (mapping == nullptr || !mapping->executable) {
    return CallBefore::kNone;
  }
  if (is_signal_return(target, return_address)) {
    return CallBefore::kThisFunction;
  }
  const auto code = code_at(target, return_address - kLongestCall, kLongestCall);
  if (code.empty()) {
    return CallBefore::kNone;
  }
  const auto compare = [&](std::optional<RemoteAddress> callee) {
    return callee && (*callee == function || tail_calls(target, *callee, function))
               ? CallBefore::kThisFunction
               : CallBefore::kOtherFunction;
  };
  if (at(code, 2) == 0xe8) {
    const RemoteAddress callee = relative(code, 3, return_address);
    const auto behind_stub = plt_target(target, callee);
    return compare(behind_stub ? behind_stub : callee);
  }
  if (at(code, 1) == 0xff && at(code, 2) == 0x15) {
    return compare(target.memory().get<RemoteAddress>(relative(code, 3, return_address)));
  }
  return is_indirect_call(code) ? CallBefore::kIndirect : CallBefore::kNone;
}

std::optional<Unwound> solve_frame_pointer(Walk& walk, const UnsolvedFrame& frame) {
  const auto start = cfi_of(*frame.object.file).function_start(frame.pc - frame.object.bias);
  const RemoteAddress function = start ? frame.object.bias + *start : 0;
  // In order of credibility. A frame above may also recurse into this function, and old data may be
  // on the stack, so alternatives are counted: only a unique explanation is a proof.
  std::optional<Unwound> direct;
  std::optional<Unwound> indirect;
  std::optional<Unwound> tail_called;
  int explanations = 0;
  for (const Candidate& candidate : candidates(walk, frame, function)) {
    auto& slot = candidate.call == CallBefore::kThisFunction ? direct
                 : candidate.call == CallBefore::kIndirect   ? indirect
                                                             : tail_called;
    if ((direct && &slot != &direct) || walk.attempts <= 0) {
      continue;
    }
    --walk.attempts;
    Registers guess = frame.registers;
    guess.set(kFramePointer, candidate.frame_pointer);
    Unwound walked = unwind(walk, guess, frame.exact);
    if (walked.end == UnwindEnd::kComplete) {
      ++explanations;
      if (!slot) {
        slot = std::move(walked);
      }
    }
  }
  auto& chosen = direct ? direct : indirect ? indirect : tail_called;
  if (chosen) {
    chosen->unproven = chosen->unproven || !direct || explanations > 1 || walk.attempts <= 0;
  }
  return chosen;
}

}  // namespace ddpdoctor::stacks
