// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/cfi_expression.h"

#include <dwarf.h>

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxSteps = 1000;

/// The expression's stack of numbers; too few operands or a full stack end the evaluation.
class Machine {
 public:
  Machine(const Registers& registers, std::optional<std::uint64_t> cfa, RemoteMemory& memory)
      : registers_(registers), cfa_(cfa), memory_(memory) {}

  bool step(const Dwarf_Op& operation);
  [[nodiscard]] bool empty() const {
    return size_ == 0;
  }
  [[nodiscard]] std::uint64_t top() const {
    return values_.at(size_ - 1);
  }

 private:
  bool push(std::uint64_t value) {
    if (size_ == values_.size()) {
      return false;
    }
    values_.at(size_++) = value;
    return true;
  }
  bool push_register(std::uint64_t number, std::uint64_t offset) {
    return registers_.known(number) && push(registers_[number] + offset);
  }
  bool read(std::uint64_t size);
  bool combine(std::uint8_t atom);

  const Registers& registers_;
  std::optional<std::uint64_t> cfa_;
  RemoteMemory& memory_;
  std::array<std::uint64_t, 32> values_{};
  std::size_t size_ = 0;
};

bool Machine::read(std::uint64_t size) {
  std::uint64_t value = 0;
  if (empty() || size == 0 || size > sizeof(value) ||
      !memory_.read(top(), std::as_writable_bytes(std::span(&value, 1)).first(size))) {
    return false;
  }
  values_.at(size_ - 1) = value;
  return true;
}

bool Machine::combine(std::uint8_t atom) {
  if (size_ < 2) {
    return false;
  }
  const std::uint64_t right = values_.at(--size_);
  std::uint64_t& left = values_.at(size_ - 1);
  const auto as_signed = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  switch (atom) {
    case DW_OP_and:
      left &= right;
      return true;
    case DW_OP_or:
      left |= right;
      return true;
    case DW_OP_minus:
      left -= right;
      return true;
    case DW_OP_plus:
      left += right;
      return true;
    case DW_OP_mul:
      left *= right;
      return true;
    case DW_OP_shl:
      left = right < 64 ? left << right : 0;
      return true;
    case DW_OP_shr:
      left = right < 64 ? left >> right : 0;
      return true;
    case DW_OP_ge:
      left = as_signed(left) >= as_signed(right) ? 1 : 0;
      return true;
    case DW_OP_gt:
      left = as_signed(left) > as_signed(right) ? 1 : 0;
      return true;
    case DW_OP_le:
      left = as_signed(left) <= as_signed(right) ? 1 : 0;
      return true;
    case DW_OP_lt:
      left = as_signed(left) < as_signed(right) ? 1 : 0;
      return true;
    case DW_OP_eq:
      left = left == right ? 1 : 0;
      return true;
    case DW_OP_ne:
      left = left != right ? 1 : 0;
      return true;
    default:
      return false;
  }
}

bool Machine::step(const Dwarf_Op& operation) {
  const std::uint8_t atom = operation.atom;
  if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
    return push(atom - std::uint64_t{DW_OP_lit0});
  }
  if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
    return push_register(atom - std::uint64_t{DW_OP_breg0}, operation.number);
  }
  switch (atom) {
    case DW_OP_nop:
      return true;
    case DW_OP_bregx:
      return push_register(operation.number, operation.number2);
    case DW_OP_call_frame_cfa:
      return cfa_.has_value() && push(*cfa_);
    case DW_OP_addr:
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
      return push(operation.number);
    case DW_OP_plus_uconst:
      if (empty()) {
        return false;
      }
      values_.at(size_ - 1) += operation.number;
      return true;
    case DW_OP_deref:
      return read(sizeof(std::uint64_t));
    case DW_OP_deref_size:
      return read(operation.number);
    case DW_OP_dup:
      return !empty() && push(top());
    case DW_OP_drop:
      size_ -= empty() ? 0U : 1U;
      return true;
    default:
      return combine(atom);
  }
}

}  // namespace

std::optional<Location> evaluate(std::span<const Dwarf_Op> expression, const Registers& registers,
                                 std::optional<std::uint64_t> cfa, RemoteMemory& memory) {
  if (expression.empty() || expression.size() > kMaxSteps) {
    return std::nullopt;
  }
  Machine machine(registers, cfa, memory);
  auto kind = Location::Kind::kAddress;
  for (const Dwarf_Op& operation : expression) {
    if (operation.atom >= DW_OP_reg0 && operation.atom <= DW_OP_reg31) {
      return Location{.kind = Location::Kind::kRegister,
                      .number = operation.atom - std::uint64_t{DW_OP_reg0}};
    }
    if (operation.atom == DW_OP_regx) {
      return Location{.kind = Location::Kind::kRegister, .number = operation.number};
    }
    if (operation.atom == DW_OP_stack_value) {
      kind = Location::Kind::kValue;
      break;
    }
    if (!machine.step(operation)) {
      return std::nullopt;
    }
  }
  if (machine.empty()) {
    return std::nullopt;
  }
  return Location{.kind = kind, .number = machine.top()};
}

std::optional<std::uint64_t> cfa_of(const CfiPlan& plan, const Registers& registers,
                                    RemoteMemory& memory) {
  // Nearly every row is "register + offset".
  if (plan.cfa.size() == 1 && plan.cfa[0].atom == DW_OP_bregx) {
    return registers.known(plan.cfa[0].number)
               ? std::optional(registers[plan.cfa[0].number] + plan.cfa[0].number2)
               : std::nullopt;
  }
  const auto location = evaluate(plan.cfa, registers, std::nullopt, memory);
  if (!location) {
    return std::nullopt;
  }
  if (location->kind == Location::Kind::kRegister) {
    return registers.known(location->number) ? std::optional(registers[location->number])
                                             : std::nullopt;
  }
  return location->number;
}

std::optional<std::uint64_t> cfa_by_frame_pointer(const CfiPlan& plan, const Registers& registers,
                                                  RemoteMemory& memory) {
  const RegisterRule& rule = plan.rules.at(rule_of(kFramePointer));
  constexpr std::uint64_t kApart = 16;
  if (!registers.known(kFramePointer) || rule.kind != RegisterRule::Kind::kExpression) {
    return std::nullopt;
  }
  const auto saved = evaluate(rule.expression, registers, 0, memory);
  const auto moved = evaluate(rule.expression, registers, kApart, memory);
  if (!saved || !moved || saved->kind != Location::Kind::kAddress ||
      moved->number - saved->number != kApart) {
    return std::nullopt;
  }
  return registers[kFramePointer] - saved->number;
}

Registers caller_registers(const CfiPlan& plan, const Registers& registers, std::uint64_t cfa,
                           RemoteMemory& memory) {
  Registers caller;
  for (std::size_t i = 0; i < kRestored.size(); ++i) {
    const RegisterRule& rule = plan.rules[i];
    const unsigned number = kRestored[i];
    if (rule.kind == RegisterRule::Kind::kSame && registers.known(number)) {
      caller.set(number, registers[number]);
    }
    if (rule.kind != RegisterRule::Kind::kExpression) {
      continue;
    }
    const auto location = evaluate(rule.expression, registers, cfa, memory);
    if (!location) {
      continue;
    }
    if (location->kind == Location::Kind::kValue) {
      caller.set(number, location->number);
    } else if (location->kind == Location::Kind::kRegister) {
      if (registers.known(location->number)) {
        caller.set(number, registers[location->number]);
      }
    } else if (const auto value = memory.get<std::uint64_t>(location->number)) {
      caller.set(number, *value);
    }
  }
  if (plan.rules.at(rule_of(kStackPointer)).kind != RegisterRule::Kind::kExpression) {
    caller.set(kStackPointer, cfa);  // by definition of the CFA on both machines
  }
  if (caller.known(kReturnAddress)) {
    caller.set(kProgramCounter, without_signature(caller[kReturnAddress]));
  }
  return caller;
}

}  // namespace ddpdoctor::stacks
