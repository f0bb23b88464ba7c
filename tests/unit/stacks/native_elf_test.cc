// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <link.h>
#include <random>

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include "collector/stacks/native/cfi_expression.h"
#include "collector/stacks/native/elf_parts.h"
#include "collector/stacks/native/symbols.h"
#include "collector/stacks/target/live_memory.h"
#include "collector/stacks/target/maps.h"

namespace ddpdoctor::stacks {
namespace {

/// Path of the C++ library of this test: a real file with every table that we read.
std::string library_path() {
  Dl_info place{};
  EXPECT_NE(::dladdr(reinterpret_cast<void*>(&::gnu_get_libc_version), &place), 0);
  return place.dli_fname;
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Every query that we make of a file. The answers do not matter: the calls must return.
void use(ElfFile& file) {
  EXPECT_LE(file.build_id().size(), 4096U);
  static_cast<void>(file.symbol("malloc"));
  static_cast<void>(file.symbol("no such symbol"));
  static_cast<void>(file.variable("no such variable", 8));
  static_cast<void>(file.address_of_offset(0x1000, true));
  static_cast<void>(file.at(~0ULL - 3, 8));
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t address = 0x20000; address < 0x160000; address += 0x5001) {
    addresses.push_back(address);
  }
  EXPECT_EQ(function_names(file, addresses).size(), addresses.size());
  LiveMemory memory(::getpid());
  for (const std::uint64_t address : addresses) {
    CfiTable& table = cfi_of(file);
    static_cast<void>(table.function_start(address));
    if (const CfiPlan* plan = table.plan_at(address)) {
      Registers registers;
      registers.set(kStackPointer, 0x1000);
      registers.set(kFramePointer, 0x1000);
      const auto cfa = cfa_of(*plan, registers, memory);
      static_cast<void>(caller_registers(*plan, registers, cfa.value_or(0x1000), memory));
    }
  }
}

TEST(ElfFile, FindsASymbolWhereTheLoaderPutIt) {
  const auto file = ElfFile::open(library_path());
  ASSERT_TRUE(file.has_value()) << file.error().what;
  Dl_info place{};
  void* const function = ::dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  ASSERT_NE(function, nullptr);
  ASSERT_NE(::dladdr(function, &place), 0);
  const auto base = reinterpret_cast<std::uint64_t>(place.dli_fbase);
  const auto value = (*file)->symbol("gnu_get_libc_version");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(base + *value, reinterpret_cast<std::uint64_t>(function));
  EXPECT_FALSE((*file)->symbol("qsor").has_value());
  EXPECT_FALSE((*file)->build_id().empty());
  const auto code = (*file)->at(*value, 16);
  ASSERT_EQ(code.size(), 16U);
  EXPECT_EQ(std::memcmp(code.data(), function, 16), 0);
}

TEST(ElfFile, NamesTheFunctionAroundAnAddress) {
  const auto file = ElfFile::open(library_path());
  ASSERT_TRUE(file.has_value());
  const std::uint64_t start = *(*file)->symbol("gnu_get_libc_version");
  const std::vector<std::uint64_t> addresses{1, start, start + 1};
  EXPECT_EQ(function_names(**file, addresses),
            (std::vector<std::string>{"", "gnu_get_libc_version", "gnu_get_libc_version"}));
  EXPECT_EQ(cfi_of(**file).function_start(start + 1), start);
}

TEST(ElfFile, FindsALocalSymbolOfTheProgramItself) {
  const auto file = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(file.has_value());
  const auto value = (*file)->symbol("main");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(function_names(**file, std::vector<std::uint64_t>{*value}),
            std::vector<std::string>{"main"});
}

TEST(ElfFile, FindsALocalVariableByNameAndSize) {
  static volatile std::uint64_t static_of_the_test = 0;
  static_of_the_test = 1;
  constexpr std::string_view kName =
      "_ZZN9ddpdoctor6stacks12_GLOBAL__N_145ElfFile_FindsALocalVariableByNameAndSize_"
      "Test8TestBodyEvE18static_of_the_test";
  const auto find = [&](std::string_view name, std::uint64_t size) {
    const auto file = ElfFile::open("/proc/self/exe");
    return file ? (*file)->variable(name, size) : std::nullopt;
  };
  const auto value = find(kName, 8);
  ASSERT_TRUE(value.has_value());
  Dl_info place{};
  ASSERT_NE(::dladdr(const_cast<std::uint64_t*>(&static_of_the_test), &place), 0);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(place.dli_fbase) + *value,
            reinterpret_cast<std::uint64_t>(&static_of_the_test));
  EXPECT_FALSE(find(kName, 4).has_value());
  EXPECT_FALSE(find(kName.substr(0, kName.size() - 1), 8).has_value());
}

TEST(ElfFile, RefusesWhatIsNone) {
  EXPECT_FALSE(ElfFile::open("/").has_value());
  EXPECT_FALSE(ElfFile::open("/dev/null").has_value());
  EXPECT_FALSE(ElfFile::open("/proc/self/status").has_value());
  EXPECT_FALSE(ElfFile::open("/no/such/file").has_value());
  EXPECT_FALSE(ElfFile::from_memory({}, "empty").has_value());
  EXPECT_FALSE(ElfFile::from_memory(std::vector<std::byte>(4096), "zeros").has_value());
}

TEST(ElfFile, PrefersTheSegmentWithTheRightAccessWhenTwoShareAPage) {
  // Two segments begin in one page of the file, as patchelf makes them; only the flags show which
  // mapping belongs to which.
  std::vector<std::byte> bytes(0x3000);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = kMachine;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phoff = sizeof(header);
  header.e_phnum = 2;
  std::array<Elf64_Phdr, 2> segments{};
  segments[0] = {PT_LOAD, PF_R, 0, 0, 0, 0x1800, 0x1800, 0x1000};
  segments[1] = {PT_LOAD, PF_R | PF_X, 0x1800, 0x2800, 0x2800, 0x800, 0x800, 0x1000};
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), segments.data(), sizeof(segments));
  const auto file = ElfFile::from_memory(bytes, "crafted");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ((*file)->address_of_offset(0x1000, true), 0x2000U);
  EXPECT_EQ((*file)->address_of_offset(0x1000, false), 0x1000U);
  EXPECT_EQ((*file)->address_of_offset(0x5000, false), std::nullopt);
}

TEST(ElfFile, SurvivesAnyBytes) {
  const auto original = bytes_of(library_path());
  ASSERT_GT(original.size(), 4096U);
  std::mt19937 random(20261120);  // NOLINT: the same bytes in every run
  const auto anywhere = [&](std::size_t from, std::size_t to) {
    return std::uniform_int_distribution<std::size_t>(from, to - 1)(random);
  };
  int opened = 0;
  for (int round = 0; round < 60; ++round) {
    auto bytes = original;
    // Headers, then the tables at the end, then any offset: a different part of the readers each
    // time.
    const std::size_t begin = round % 3 == 0 ? 16 : round % 3 == 1 ? bytes.size() - 4096 : 0;
    const std::size_t end = round % 3 == 0 ? 1024 : bytes.size();
    for (int change = 0; change < (round % 3 == 2 ? 20000 : 30); ++change) {
      bytes[anywhere(begin, end)] = static_cast<std::byte>(anywhere(0, 256));
    }
    if (round % 5 == 4) {
      bytes.resize(anywhere(64, bytes.size()));
    }
    if (const auto file = ElfFile::from_memory(std::move(bytes), "damaged")) {
      ++opened;
      use(**file);
    }
  }
  EXPECT_GT(opened, 20);  // else nothing was tested
}

TEST(CfiExpression, EndsOnWhatItDoesNotKnow) {
  LiveMemory memory(::getpid());
  Registers registers;
  registers.set(kStackPointer, 100);
  const auto run = [&](std::vector<Dwarf_Op> operations) {
    return evaluate(operations, registers, 500, memory);
  };
  const auto by_register = [](unsigned number) { return static_cast<std::uint8_t>(0x70 + number); };
  EXPECT_EQ(
      run({{.atom = by_register(kStackPointer), .number = 8, .number2 = 0, .offset = 0}})->number,
      108U);
  EXPECT_EQ(run({{.atom = 0x9c, .number = 0, .number2 = 0, .offset = 0}})->number,
            500U);  // call_frame_cfa
  EXPECT_FALSE(run({}).has_value());
  EXPECT_FALSE(run({{.atom = by_register(kFramePointer), .number = 0, .number2 = 0, .offset = 0}})
                   .has_value());  // unknown
  EXPECT_FALSE(run({{.atom = 0x2f, .number = 1, .number2 = 0, .offset = 0}}).has_value());  // skip
  EXPECT_FALSE(run({{.atom = 0x22, .number = 0, .number2 = 0, .offset = 0}})
                   .has_value());  // plus on nothing
  EXPECT_FALSE(
      run(std::vector<Dwarf_Op>(5000, {.atom = 0x30, .number = 0, .number2 = 0, .offset = 0}))
          .has_value());
}

}  // namespace
}  // namespace ddpdoctor::stacks
