// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/cfi_table.h"

#include <cstdlib>
#include <cstring>
#include <libelf.h>

#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/return_signing.h"

namespace ddpdoctor::stacks {

namespace {

std::unique_ptr<CfiPlan> make_plan(Dwarf_CFI* cfi, std::uint64_t address) {
  auto plan = std::make_unique<CfiPlan>();
  if (::dwarf_cfi_addrframe(cfi, address, &plan->frame) != 0) {
    plan->frame = nullptr;
    return nullptr;
  }
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (::dwarf_frame_info(plan->frame, nullptr, nullptr, &plan->signal) < 0 ||
      ::dwarf_frame_cfa(plan->frame, &operations, &count) != 0 || operations == nullptr) {
    return nullptr;
  }
  plan->cfa = {operations, count};
  for (std::size_t i = 0; i < kRestored.size(); ++i) {
    RegisterRule& rule = plan->rules[i];
    if (::dwarf_frame_register(plan->frame, static_cast<int>(kRestored[i]), rule.storage.data(),
                               &operations, &count) != 0) {
      continue;
    }
    // The pointer distinguishes the two empty answers (libdw.h): ours = undefined, null =
    // unchanged.
    if (count != 0) {
      rule.kind = RegisterRule::Kind::kExpression;
      rule.expression = {operations, count};
    } else if (operations == nullptr) {
      rule.kind = RegisterRule::Kind::kSame;
    }
  }
  return plan;
}

/// The file offset of a file address; beyond the end of the file if there is none.
std::uint64_t offset_of(const ElfFile::Parts& parts, std::uint64_t address) {
  for (const Elf64_Phdr& segment : parts.segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return parts.image.size();
}

}  // namespace

CfiPlan::~CfiPlan() {
  std::free(frame);
}  // NOLINT: libdw says to free() it

CfiTable::CfiTable(ElfFile::Parts& parts) : parts_(&parts) {
  ::elf_version(EV_CURRENT);
  // NOLINTNEXTLINE: libelf wants char; it reads, because the file has our byte order.
  elf_ = ::elf_memory(reinterpret_cast<char*>(parts.image.data()), parts.image.size());
  if (elf_ != nullptr) {
    cfi_ = ::dwarf_getcfi_elf(elf_);
  }
}

CfiTable::~CfiTable() {
  plans_.clear();
  if (cfi_ != nullptr) {
    ::dwarf_cfi_end(cfi_);
  }
  if (elf_ != nullptr) {
    ::elf_end(elf_);
  }
}

const CfiPlan* CfiTable::plan_at(std::uint64_t address) {
  if (cfi_ == nullptr) {
    return nullptr;
  }
  auto found = plans_.find(address);
  if (found == plans_.end()) {
    if (kMachine == EM_AARCH64) {
      if (const auto function = function_at(address)) {
        blank_return_signing(*parts_, offset_of(*parts_, function->description));
      }
    }
    found = plans_.emplace(address, make_plan(cfi_, address)).first;
  }
  return found->second.get();
}

std::optional<CfiTable::Function> CfiTable::function_at(std::uint64_t address) const {
  // version, encodings of pointer, count and table: the form every linker writes (pcrel sdata4,
  // udata4, datarel sdata4).
  constexpr std::array<unsigned char, 4> kForm{1, 0x1b, 0x03, 0x3b};
  struct Entry {
    std::int32_t start;
    std::int32_t description;
  };
  if (!parts_->frame_header) {
    return std::nullopt;
  }
  const auto bytes = parts_->range(parts_->frame_header->p_offset, parts_->frame_header->p_filesz);
  std::uint32_t count = 0;
  constexpr std::size_t kTable = 12;
  if (bytes.size() < kTable || std::memcmp(bytes.data(), kForm.data(), kForm.size()) != 0) {
    return std::nullopt;
  }
  std::memcpy(&count, bytes.data() + 8, sizeof(count));
  const std::uint64_t base = parts_->frame_header->p_vaddr;
  const auto row = [&](std::size_t index) {
    Entry entry{};
    std::memcpy(&entry, bytes.data() + kTable + index * sizeof(entry), sizeof(entry));
    return Function{
        .start = base + static_cast<std::uint64_t>(std::int64_t{entry.start}),
        .description = base + static_cast<std::uint64_t>(std::int64_t{entry.description})};
  };
  const auto start = [&](std::size_t index) { return row(index).start; };
  if (count == 0 || count > (bytes.size() - kTable) / sizeof(Entry) || start(0) > address) {
    return std::nullopt;
  }
  std::size_t low = 0;
  std::size_t high = count;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (start(middle) <= address ? low : high) = middle;
  }
  return row(low);
}

std::optional<std::uint64_t> CfiTable::function_start(std::uint64_t address) const {
  const auto function = function_at(address);
  return function ? std::optional(function->start) : std::nullopt;
}

CfiTable& cfi_of(ElfFile& file) {
  ElfFile::Parts& parts = file.parts();
  if (!parts.cfi) {
    parts.cfi = std::make_unique<CfiTable>(parts);
  }
  return *parts.cfi;
}

}  // namespace ddpdoctor::stacks
