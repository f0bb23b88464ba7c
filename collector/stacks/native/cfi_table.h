// SPDX-License-Identifier: Apache-2.0
// Call-frame information of one ELF file through libdw's low-level interface: how to leave the
// frame that runs at an address. libdw parses; what its operations compute is evaluated by us
// (cfi_expression), with limits, over the target's memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include <elfutils/libdw.h>

#include "collector/stacks/native/elf_file.h"

namespace ddpdoctor::stacks {

/// DWARF numbers of x86-64 registers.
enum : unsigned {
  kRbx = 3,
  kRbp = 6,
  kRsp = 7,
  kR12 = 12,
  kR13 = 13,
  kR14 = 14,
  kR15 = 15,
  kRip = 16,
  kRegisterCount = 17
};

/// The registers a callee preserves, and the return address: what a frame's rules are asked for.
constexpr std::array<unsigned, 8> kRestored{kRbx, kRbp, kRsp, kR12, kR13, kR14, kR15, kRip};

/// How the caller's value of one register is found.
struct RegisterRule {
  enum class Kind { kUndefined, kSame, kExpression };
  Kind kind = Kind::kUndefined;
  std::array<Dwarf_Op, 3> storage{};  // libdw puts short expressions here
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

  Dwarf_Frame* frame = nullptr;  // owns what the expressions point to
  std::span<const Dwarf_Op> cfa;
  std::array<RegisterRule, kRestored.size()> rules;  // in the order of kRestored
  bool signal = false;  // a signal trampoline: the caller's pc is exact
};

/// All plans of a file that were asked for. The file must outlive it.
class CfiTable {
 public:
  explicit CfiTable(ElfFile::Parts& parts);
  CfiTable(const CfiTable&) = delete;
  CfiTable& operator=(const CfiTable&) = delete;
  CfiTable(CfiTable&&) = delete;
  CfiTable& operator=(CfiTable&&) = delete;
  ~CfiTable();

  /// The plan at a file address; nothing when no function there has call-frame information.
  const CfiPlan* plan_at(std::uint64_t address);

  /// Where the function around a file address starts, by the search table of .eh_frame_hdr.
  [[nodiscard]] std::optional<std::uint64_t> function_start(std::uint64_t address) const;

 private:
  ElfFile::Parts* parts_;
  Elf* elf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<CfiPlan>> plans_;
};

}  // namespace ddpdoctor::stacks
