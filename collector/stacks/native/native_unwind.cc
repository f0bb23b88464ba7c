// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/native_unwind.h"

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/frame_pointer_solver.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxFrames = 4096;

bool is_code(Target& target, RemoteAddress address) {
  const Mapping* const mapping = target.maps().find(address);
  return mapping != nullptr && mapping->executable;
}

/// Unwinds a frame without call-frame information: code made at run time usually keeps a frame
/// pointer; a call through a null pointer left its return address on top of the stack.
std::optional<Registers> step_without_cfi(Walk& walk, const Registers& registers, bool code) {
  constexpr std::uint64_t kMaxFrameBytes = 1U << 20U;
  if (code && registers.known(kStackPointer) && registers.known(kFramePointer) &&
      registers[kFramePointer] - registers[kStackPointer] > kMaxFrameBytes) {
    return std::nullopt;
  }
  auto caller = code ? caller_by_frame_pointer(registers, walk.stack)
                     : caller_of_bad_call(registers, walk.stack);
  return caller && is_code(walk.target, (*caller)[kProgramCounter]) ? caller : std::nullopt;
}

/// A frame found without call-frame information must be above its callee, by the stack pointer or,
/// if that is unknown, by the frame pointer. A bad call may have left both unchanged.
bool goes_up(const Registers& caller, const Registers& registers, bool code) {
  const unsigned by = caller.known(kStackPointer) ? kStackPointer : kFramePointer;
  return caller[by] > registers[by] || (!code && caller[by] == registers[by]);
}

/// Appends the walk that continues from an inferred frame pointer; frames after the first depend on
/// it.
void append_solved(Unwound& unwound, Unwound solved) {
  unwound.frames.pop_back();
  for (std::size_t i = 0; i < solved.frames.size(); ++i) {
    solved.frames[i].inferred = solved.frames[i].inferred || (i > 0 && solved.unproven);
    unwound.frames.push_back(solved.frames[i]);
  }
  unwound.end = solved.end;
  unwound.unproven = unwound.unproven || solved.unproven;
  unwound.without_cfi += solved.without_cfi;
}

/// The state of one walk. step() returns true while there is a caller.
class Walker {
 public:
  Walker(Walk& walk, const Registers& registers, bool exact)
      : walk_(walk), registers_(registers), exact_(exact) {}

  bool step(Unwound& unwound);

 private:
  bool stop(Unwound& unwound, UnwindEnd end) const {
    unwound.end = end;
    return false;
  }
  bool leave_unknown_code(Unwound& unwound, RemoteAddress looked_up);
  bool leave(Unwound& unwound, const CfiPlan& plan, RemoteAddress cfa);

  Walk& walk_;
  Registers registers_;
  bool exact_;
};

bool Walker::leave_unknown_code(Unwound& unwound, RemoteAddress looked_up) {
  if (registers_.known(kStackPointer)) {
    if (const auto interrupted =
            interrupted_by_signal(registers_, walk_.target.memory(), walk_.stack)) {
      registers_ = *interrupted;
      exact_ = true;
      return true;
    }
  }
  const bool code = is_code(walk_.target, looked_up);
  const auto caller =
      code || unwound.frames.size() == 1 ? step_without_cfi(walk_, registers_, code) : std::nullopt;
  if (!caller) {
    return stop(unwound, code ? UnwindEnd::kNoCfi : UnwindEnd::kUnmapped);
  }
  ++unwound.without_cfi;
  unwound.frames.back().cfa = (*caller)[kStackPointer];  // 0 if unknown
  if (!goes_up(*caller, registers_, code)) {
    return stop(unwound, UnwindEnd::kNoProgress);
  }
  registers_ = *caller;
  exact_ = false;
  return true;
}

bool Walker::leave(Unwound& unwound, const CfiPlan& plan, RemoteAddress cfa) {
  unwound.frames.back().cfa = cfa;
  const Registers caller = caller_registers(plan, registers_, cfa, walk_.stack);
  if (!caller.known(kProgramCounter)) {
    const bool in_register = plan.rules.back().kind == RegisterRule::Kind::kSame;
    return stop(unwound, in_register ? UnwindEnd::kUnknownRegister : UnwindEnd::kUnreadable);
  }
  // Stacks grow downwards. Exceptions: a signal handler's stack may be elsewhere, and the caller of
  // a leaf function, or the code a signal interrupted, may have the same stack pointer.
  const bool stays = caller[kStackPointer] == registers_[kStackPointer] && exact_;
  if (!plan.signal && unwound.frames.size() > 1 && !stays &&
      caller[kStackPointer] <= registers_[kStackPointer]) {
    return stop(unwound, UnwindEnd::kNoProgress);
  }
  exact_ = plan.signal;
  registers_ = caller;
  return true;
}

bool Walker::step(Unwound& unwound) {
  const RemoteAddress pc = registers_[kProgramCounter];
  if (pc == 0 && !unwound.frames.empty()) {
    return stop(unwound, UnwindEnd::kComplete);
  }
  unwound.frames.push_back({.pc = pc, .cfa = 0, .exact = exact_, .inferred = false});
  const RemoteAddress looked_up = exact_ ? pc : pc - 1;
  const auto object = walk_.target.object_at(looked_up);
  const CfiPlan* const plan =
      object ? cfi_of(*object->file).plan_at(looked_up - object->bias) : nullptr;
  if (plan == nullptr) {
    return leave_unknown_code(unwound, looked_up);
  }
  if (plan->rules.back().kind == RegisterRule::Kind::kUndefined) {
    return stop(unwound, UnwindEnd::kComplete);  // _start and clone mark the end this way
  }
  auto cfa = cfa_of(*plan, registers_, walk_.stack);
  if (!cfa && !registers_.known(kStackPointer)) {
    cfa = cfa_by_frame_pointer(*plan, registers_, walk_.stack);
  }
  if (cfa) {
    return leave(unwound, *plan, *cfa);
  }
  if (!registers_.known(kFramePointer)) {
    auto solved = solve_frame_pointer(walk_, {.registers = registers_,
                                              .plan = *plan,
                                              .object = *object,
                                              .pc = looked_up,
                                              .exact = exact_});
    if (solved) {
      append_solved(unwound, std::move(*solved));
      return false;
    }
  }
  return stop(unwound, registers_.known(kFramePointer) ? UnwindEnd::kUnreadable
                                                       : UnwindEnd::kUnknownRegister);
}

}  // namespace

Unwound unwind(Walk& walk, Registers registers, bool exact) {
  Unwound unwound;
  if (!registers.known(kProgramCounter) || !registers.known(kStackPointer)) {
    return unwound;
  }
  Walker walker(walk, registers, exact);
  while (walker.step(unwound)) {
    if (unwound.frames.size() >= kMaxFrames) {
      unwound.end = UnwindEnd::kTooDeep;
      break;
    }
  }
  return unwound;
}

std::string problem_of(const Unwound& unwound, Target& target) {
  if (unwound.frames.empty()) {
    return "no program counter";
  }
  const RemoteAddress pc = unwound.frames.back().pc;
  const Mapping* const mapping = target.maps().find(pc);
  const std::string place =
      mapping == nullptr || mapping->path.empty()
          ? fmt::format("{:#x}, code made at run time", pc)
          : fmt::format("{:#x} in {}", pc, base::printable(base::file_name(mapping->path)));
  switch (unwound.end) {
    case UnwindEnd::kComplete:
      return unwound.without_cfi == 0
                 ? ""
                 : "part of the stack was found by frame pointers only: code made "
                   "at run time has no call-frame information";
    case UnwindEnd::kUnmapped:
      return fmt::format("the stack ends at {:#x}, which is not mapped", pc);
    case UnwindEnd::kNoCfi:
      return fmt::format("the stack ends at {}: no call-frame information there", place);
    case UnwindEnd::kUnknownRegister:
      return fmt::format("the stack ends at {}: a register is needed that only a stop shows",
                         place);
    case UnwindEnd::kUnreadable:
      return fmt::format("the stack ends at {}: its caller cannot be read", place);
    case UnwindEnd::kNoProgress:
      return fmt::format("the stack ends at {}: its caller would lie deeper", place);
    case UnwindEnd::kTooDeep:
      return fmt::format("the stack is deeper than {} frames", kMaxFrames);
  }
  return {};
}

}  // namespace ddpdoctor::stacks
