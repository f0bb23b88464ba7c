// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/native/source_lines.h"

#include <dlfcn.h>
#include <link.h>

#include <gtest/gtest.h>

constexpr int kLineOfTheFunction = __LINE__ + 2;
// Has a C name, so that symbol tables have it unmangled.
extern "C" __attribute__((noinline, visibility("default"))) int a_place_in_code(int number) {
  return number * 3 + 1;
}

namespace ddpdoctor::stacks {
namespace {

std::uint64_t address_in_file() {
  Dl_info where{};
  link_map* object = nullptr;
  auto* const function = reinterpret_cast<void*>(&a_place_in_code);
  EXPECT_NE(::dladdr1(function, &where, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP), 0);
  return reinterpret_cast<std::uint64_t>(function) - object->l_addr;
}

TEST(SourceLines, NameFunctionAndLineWhereTheFileTellsThem) {
  SourceLines lines;
  const CodePlace place = place_in_code(lines, "/proc/self/exe", address_in_file());
  EXPECT_EQ(place.function, "a_place_in_code");
  if (place.source.line != 0) {  // built with debug information
    EXPECT_TRUE(place.source.file.ends_with("source_lines_test.cc")) << place.source.file;
    EXPECT_GE(place.source.line, kLineOfTheFunction);  // in optimised code, it begins with its body
    EXPECT_LE(place.source.line, kLineOfTheFunction + 1);
  }
}

TEST(SourceLines, SayNothingOfFilesThatAreGoneOrNoCode) {
  SourceLines lines;
  EXPECT_FALSE(lines.at("/gone/a.out", 64));
  EXPECT_FALSE(lines.at("/proc/self/status", 64));
  EXPECT_FALSE(lines.at("/dev/zero", 64));
  EXPECT_TRUE(place_in_code(lines, "/gone/a.out", 64).function.empty());
}

TEST(SourceLines, AreForTheUsersOwnCode) {
  EXPECT_TRUE(may_be_user_code("/home/ada/job"));
  EXPECT_TRUE(may_be_user_code("/home/ada/libsolver.so"));
  EXPECT_FALSE(may_be_user_code("/usr/bin/mpirun"));
  EXPECT_FALSE(may_be_user_code("/home/ada/openmpi/lib/libmpi.so.40"));
  EXPECT_FALSE(may_be_user_code("/home/ada/openmpi/lib/openmpi/mca_btl_vader.so"));
  EXPECT_FALSE(may_be_user_code("/home/ada/.pyenv/bin/python3.11"));
  EXPECT_FALSE(may_be_user_code("[vdso]"));
  EXPECT_FALSE(may_be_user_code(""));
}

}  // namespace
}  // namespace ddpdoctor::stacks
