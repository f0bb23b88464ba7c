// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the bytes are an ELF file of the observed process; every query that capture() makes
// of a file is made. Without libFuzzer the program runs the files it is given (the corpus, or a
// crash to debug).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/native_unwind.h"
#include "collector/stacks/native/symbols.h"

namespace ddpdoctor::stacks {
namespace {

constexpr RemoteAddress kBias = 0x7f0000000000;
constexpr RemoteAddress kStack = 0x7ffe00000000;
constexpr std::size_t kStackBytes = 2048;  // an endless walk costs a frame for every 32 bytes
constexpr std::size_t kMost = 16;          // addresses in a file at which a walk starts
constexpr std::uint64_t kOfSegment = 8;

/// A stack full of addresses of the file, so that unwinding continues as long as the file's rules
/// allow.
class FakeStack final : public RemoteMemory {
 public:
  explicit FakeStack(std::uint64_t code) : code_(code) {}

  bool read(RemoteAddress address, std::span<std::byte> into) override {
    if (address < kStack || address - kStack > kStackBytes - into.size()) {
      return false;
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      const RemoteAddress at = address + i - kStack;
      const std::uint64_t word =
          at % 16 < 8 ? kStack + at / 8 * 8 + 32 : kBias + code_ + at / 16 * 0x31;
      into[i] = static_cast<std::byte>(word >> (at % 8 * 8));
    }
    return true;
  }

 private:
  std::uint64_t code_;
};

class FakeTarget final : public Target {
 public:
  FakeTarget(ElfFile& file, FakeStack& memory, Maps maps)
      : file_(file), memory_(memory), maps_(std::move(maps)) {}

  [[nodiscard]] pid_t pid() const override {
    return 1;
  }
  RemoteMemory& memory() override {
    return memory_;
  }
  [[nodiscard]] const Maps& maps() const override {
    return maps_;
  }
  std::optional<LoadedObject> object_at(RemoteAddress address) override {
    return maps_.find(address) != nullptr && address < kStack
               ? std::optional(LoadedObject{.file = &file_, .bias = kBias})
               : std::nullopt;
  }
  std::optional<RemoteAddress> symbol(std::string_view /*object_part*/,
                                      std::string_view name) override {
    return file_.symbol(name);
  }

 private:
  ElfFile& file_;
  FakeStack& memory_;
  Maps maps_;
};

void unwind_from(FakeTarget& target, FakeStack& stack, std::uint64_t code,
                 bool knows_frame_pointer) {
  Registers registers;
  registers.set(kProgramCounter, kBias + code);
  registers.set(kStackPointer, kStack + 16);
  if (knows_frame_pointer) {
    registers.set(kFramePointer, kStack + 64);
  }
  Walk walk{.target = target, .stack = stack};
  const Unwound unwound = unwind(walk, registers);
  static_cast<void>(problem_of(unwound, target));
}

void use(ElfFile& file) {
  static_cast<void>(file.build_id());
  static_cast<void>(file.symbol("_PyRuntime"));
  std::vector<std::uint64_t> addresses;
  for (const Elf64_Phdr& segment : file.parts().segments) {
    static_cast<void>(file.address_of_offset(segment.p_offset, (segment.p_flags & PF_X) != 0));
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && addresses.size() < kMost) {
      for (std::uint64_t i = 0; i < kOfSegment; ++i) {
        addresses.push_back(segment.p_vaddr + segment.p_filesz / kOfSegment * i + i);
      }
    }
  }
  std::sort(addresses.begin(), addresses.end());
  static_cast<void>(function_names(file, addresses));
  auto maps = Maps::parse(
      "7f0000000000-7f1000000000 r-xp 0 8:1 7 /x.so\n7ffe00000000-7ffe00004000 rw-p 0 0:0 0\n");
  if (!maps) {
    return;
  }
  for (const std::uint64_t address : addresses) {
    FakeStack stack(address);
    FakeTarget target(file, stack, *maps);
    unwind_from(target, stack, address, true);
    unwind_from(target, stack, address, false);
  }
}

}  // namespace
}  // namespace ddpdoctor::stacks

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = ddpdoctor::stacks::ElfFile::from_memory({bytes.begin(), bytes.end()}, "fuzzed");
  if (file) {
    ddpdoctor::stacks::use(**file);
  }
  return 0;
}
