// SPDX-License-Identifier: Apache-2.0
// Call-frame information of one ELF file through libdw's low-level interface: how to unwind the
// frame at an address. libdw parses; our code (cfi_expression) evaluates the operations, with
// limits, over the target's memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include <elfutils/libdw.h>

#include "collector/stacks/native/elf_file.h"
#include "collector/stacks/native/registers.h"

namespace ddpdoctor::stacks {

/// The index of a register's rule in a plan.
constexpr std::size_t rule_of(unsigned number) {
  std::size_t i = 0;
  while (kRestored.at(i) != number) {
    ++i;
  }
  return i;
}

/// How to find the caller's value of one register.
struct RegisterRule {
  enum class Kind { kUndefined, kSame, kExpression };
  Kind kind = Kind::kUndefined;
  std::array<Dwarf_Op, 3> storage{};  // libdw stores short expressions here
  std::span<const Dwarf_Op> expression;
};

/// The rules at one address.
struct CfiPlan {
  CfiPlan() = default;
  CfiPlan(const CfiPlan&) = delete;
  CfiPlan& operator=(const CfiPlan&) = delete;
  CfiPlan(CfiPlan&&) = delete;
  CfiPlan& operator=(CfiPlan&&) = delete;
  ~CfiPlan();

  Dwarf_Frame* frame = nullptr;  // owns the memory of the expressions
  std::span<const Dwarf_Op> cfa;
  std::array<RegisterRule, kRestored.size()> rules;  // in the order of kRestored
  bool signal = false;  // a signal trampoline: the caller's pc is exact, not a return address
};

/// All requested plans of a file. The file must outlive it.
class CfiTable {
 public:
  explicit CfiTable(ElfFile::Parts& parts);
  CfiTable(const CfiTable&) = delete;
  CfiTable& operator=(const CfiTable&) = delete;
  CfiTable(CfiTable&&) = delete;
  CfiTable& operator=(CfiTable&&) = delete;
  ~CfiTable();

  /// The plan at a file address; nothing if no function there has call-frame information.
  const CfiPlan* plan_at(std::uint64_t address);

  /// The start of the function around a file address, from the search table of .eh_frame_hdr.
  [[nodiscard]] std::optional<std::uint64_t> function_start(std::uint64_t address) const;

 private:
  /// A row of the search table: the start of a function and the position of its description.
  struct Function {
    std::uint64_t start = 0;
    std::uint64_t description = 0;
  };
  [[nodiscard]] std::optional<Function> function_at(std::uint64_t address) const;
  ElfFile::Parts* parts_;
  Elf* elf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<CfiPlan>> plans_;
};

}  // namespace ddpdoctor::stacks
