// SPDX-License-Identifier: Apache-2.0
// One observed process: its memory, maps and ELF objects. The native and Python readers both use
// it.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include <sys/types.h>

#include "collector/stacks/native/elf_file.h"
#include "collector/stacks/target/maps.h"
#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// An ELF object as loaded in the target: file addresses + bias = remote addresses.
struct LoadedObject {
  ElfFile* file = nullptr;
  RemoteAddress bias = 0;
};

/// Connects a pid with its memory and loaded objects; all targets share one cache of objects.
class Target {
 public:
  virtual ~Target() = default;
  [[nodiscard]] virtual pid_t pid() const = 0;
  virtual RemoteMemory& memory() = 0;
  [[nodiscard]] virtual const Maps& maps() const = 0;

  /// The object mapped at `address`; nothing for anonymous memory or an unreadable file.
  virtual std::optional<LoadedObject> object_at(RemoteAddress address) = 0;

  /// Remote address of a symbol (exact mangled name; .symtab, then .dynsym) in the first mapped
  /// object whose file name contains `object_part`; nothing if there is no such object or symbol.
  virtual std::optional<RemoteAddress> symbol(std::string_view object_part,
                                              std::string_view name) = 0;
};

}  // namespace ddpdoctor::stacks
