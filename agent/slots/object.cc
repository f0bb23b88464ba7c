// SPDX-License-Identifier: Apache-2.0
#include "agent/slots/object.h"

#include <cstring>
#include <elf.h>
#include <unistd.h>

#include "agent/slots/names.h"

namespace ddpdoctor::agent {
namespace {

/// glibc has added the base to the addresses of objects it loaded, but not for the kernel's own
/// object.
template <typename T>
const T* address(const Object& object, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < object.base ? object.base + value : value);
}

void read_part(Object& object, const ElfW(Phdr) & part) {
  const ElfW(Addr) begin = object.base + part.p_vaddr;
  const ElfW(Addr) end = begin + part.p_memsz;
  if (part.p_type == PT_GNU_RELRO) {
    const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    object.locked = begin & ~(page - 1);
    object.locked_end = end & ~(page - 1);
  }
  if (part.p_type != PT_LOAD) {
    return;
  }
  object.begin = object.end == 0 || begin < object.begin ? begin : object.begin;
  object.end = end > object.end ? end : object.end;
  if ((part.p_flags & PF_X) != 0 && object.code == 0) {
    object.code = begin;
    object.code_end = end;
  }
}

void read_dynamic(Object& object, const ElfW(Dyn) * entry) {
  object.dynamic = entry;
  std::size_t relative = 0;
  bool with_addends = true;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) {
      object.symbols = address<ElfW(Sym)>(object, value);
    } else if (entry->d_tag == DT_STRTAB) {
      object.names = address<char>(object, value);
    } else if (entry->d_tag == DT_STRSZ) {
      object.names_bytes = value;
    } else if (entry->d_tag == DT_JMPREL) {
      object.calls = address<ElfW(Rela)>(object, value);
    } else if (entry->d_tag == DT_PLTRELSZ) {
      object.calls_count = value / sizeof *object.calls;
    } else if (entry->d_tag == DT_PLTREL) {
      with_addends = value == DT_RELA;
    } else if (entry->d_tag == DT_RELA) {
      object.data = address<ElfW(Rela)>(object, value);
    } else if (entry->d_tag == DT_RELASZ) {
      object.data_count = value / sizeof *object.data;
    } else if (entry->d_tag == DT_RELACOUNT) {
      relative = value;
    } else if (entry->d_tag == DT_GNU_HASH) {
      object.gnu_hash = address<std::uint32_t>(object, value);
    } else if (entry->d_tag == DT_HASH) {
      object.old_hash = address<std::uint32_t>(object, value);
    } else if (entry->d_tag == DT_VERSYM) {
      object.versions = address<ElfW(Half)>(object, value);
    }
  }
  const bool readable = with_addends && object.symbols != nullptr && object.names != nullptr;
  object.calls_count = readable && object.calls != nullptr ? object.calls_count : 0;
  object.data_count = readable && object.data != nullptr ? object.data_count : 0;
  relative = relative < object.data_count ? relative : object.data_count;
  object.data += relative;
  object.data_count -= relative;
}

#if defined(__aarch64__)
constexpr std::uint32_t kCallSlot = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kDataSlot = R_AARCH64_GLOB_DAT;
constexpr std::uint32_t kAddress = R_AARCH64_ABS64;

/// True if a slot of the procedure linkage table still points to the code that calls the dynamic
/// linker, which is the same for all slots: [bti c] stp x16, x30, [sp, #-16]!
bool is_unbound(const Object& object, const void* value, std::size_t) {
  constexpr std::uint32_t kBranchTarget = 0xd503245f;
  constexpr std::uint32_t kSave = 0xa9bf7bf0;
  std::uint32_t code[2];
  const auto at = reinterpret_cast<ElfW(Addr)>(value);
  if (at < object.code || at + sizeof code > object.code_end) {
    return false;
  }
  memcpy(code, value, sizeof code);
  return code[code[0] == kBranchTarget ? 1 : 0] == kSave;
}
#else
constexpr std::uint32_t kCallSlot = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kDataSlot = R_X86_64_GLOB_DAT;
constexpr std::uint32_t kAddress = R_X86_64_64;

/// True if a slot of the procedure linkage table still points to the code that pushes its number
/// and calls the dynamic linker.
bool is_unbound(const Object& object, const void* value, std::size_t index) {
  constexpr unsigned char kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};
  constexpr unsigned char kPush = 0x68;
  constexpr std::size_t kLength = sizeof kBranchTarget + 1 + sizeof(std::uint32_t);
  const auto at = reinterpret_cast<ElfW(Addr)>(value);
  if (at < object.code || at + kLength > object.code_end) {
    return false;
  }
  const auto* code = static_cast<const unsigned char*>(value);
  code += memcmp(code, kBranchTarget, sizeof kBranchTarget) == 0 ? sizeof kBranchTarget : 0;
  std::uint32_t number = 0;
  memcpy(&number, code + 1, sizeof number);
  return code[0] == kPush && number == index;
}

#endif

/// The content of a slot before its object is relocated: an address without the base.
bool is_unrelocated(const Object& object, const void* value) {
  return object.base != 0 && reinterpret_cast<ElfW(Addr)>(value) < object.end - object.base;
}

}  // namespace

Object read_object(const dl_phdr_info& info) {
  Object object;
  object.base = info.dlpi_addr;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    read_part(object, info.dlpi_phdr[i]);
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic != nullptr) {
    read_dynamic(object, dynamic);
  }
  return object;
}

/// The program may have changed function tables outside the locked pages: their content is not
/// assumed to be the function of that name.
bool Slots::take(const ElfW(Rela) & relocation, std::size_t index, bool of_calls,
                 Slot& slot) const {
  const auto type = ELF64_R_TYPE(relocation.r_info);
  auto* const where = reinterpret_cast<void**>(object_->base + relocation.r_offset);
  const bool of_table = type == kAddress && relocation.r_addend == 0 && object_->is_locked(where);
  if (type != kCallSlot && type != kDataSlot && !of_table) {
    return false;
  }
  const char* const name =
      object_->name_at(object_->symbols[ELF64_R_SYM(relocation.r_info)].st_name);
  const int place = name == nullptr ? -1 : place_of(name);
  if (place < 0) {
    return false;
  }
  void* const value = __atomic_load_n(where, __ATOMIC_ACQUIRE);
  if (value == nullptr || is_unrelocated(*object_, value)) {
    return false;
  }
  slot = {where, value, place, of_calls && is_unbound(*object_, value, index)};
  return true;
}

bool Slots::next(Slot& slot) {
  while (call_ < object_->calls_count) {
    const std::size_t index = call_++;
    if (take(object_->calls[index], index, true, slot)) {
      return true;
    }
  }
  while (datum_ < object_->data_count) {
    const std::size_t index = datum_++;
    if (take(object_->data[index], index, false, slot)) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::agent
