// SPDX-License-Identifier: Apache-2.0
// A loaded program or library as the dynamic linker left it: the slots through which it calls
// functions of others, and their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>

namespace ddpdoctor::agent {

struct Object {
  ElfW(Addr) base = 0;
  ElfW(Addr) begin = 0;  // begin of its memory
  ElfW(Addr) end = 0;
  ElfW(Addr) code = 0;  // its first executable part
  ElfW(Addr) code_end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::size_t names_bytes = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  const std::uint32_t* gnu_hash = nullptr;  // either of the two tables for finding a symbol by name
  const std::uint32_t* old_hash = nullptr;
  const ElfW(Half) * versions = nullptr;  // versions of the symbols; null = none has one
  const ElfW(Rela) * calls = nullptr;
  std::size_t calls_count = 0;
  const ElfW(Rela) * data = nullptr;  // without relocations that have no symbol
  std::size_t data_count = 0;
  ElfW(Addr) locked = 0;  // whole pages that the loader made read-only after relocation
  ElfW(Addr) locked_end = 0;

  [[nodiscard]] bool holds(const void* address) const {
    const auto at = reinterpret_cast<ElfW(Addr)>(address);
    return at >= begin && at < end;
  }
  /// Null if the offset is not one of the object's names.
  [[nodiscard]] const char* name_at(std::size_t offset) const {
    return names != nullptr && offset < names_bytes ? names + offset : nullptr;
  }
  [[nodiscard]] bool is_locked(const void* address) const {
    const auto at = reinterpret_cast<ElfW(Addr)>(address);
    return at >= locked && at < locked_end;
  }
};

Object read_object(const dl_phdr_info& info);

/// The position of a function's address: `place` of its name (names.h).
struct Slot {
  void** address;
  void* value;
  int place;
  bool unbound;  // lazy: the first call goes to the dynamic linker
};

/// Iterates over all slots of an object that hold a function of names.h, whichever code wrote it.
class Slots {
 public:
  explicit Slots(const Object& object) : object_(&object) {}
  /// False if there are no more.
  bool next(Slot& slot);

 private:
  bool take(const ElfW(Rela) & relocation, std::size_t index, bool of_calls, Slot& slot) const;
  const Object* object_;
  std::size_t call_ = 0;
  std::size_t datum_ = 0;
};

}  // namespace ddpdoctor::agent
