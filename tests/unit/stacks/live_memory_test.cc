// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/live_memory.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace ddpdoctor::stacks {
namespace {

/// Pages of this process; the n-th starts with n.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : count_(count),
        memory_(static_cast<std::byte*>(::mmap(nullptr, count * kPageSize, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < count; ++i) {
      set(i, static_cast<int>(i));
    }
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    ::munmap(memory_, count_ * kPageSize);
  }

  void set(std::size_t page, int value) {
    std::memcpy(memory_ + page * kPageSize, &value, sizeof value);
  }
  void take_away(std::size_t page) {
    ::mprotect(memory_ + page * kPageSize, kPageSize, PROT_NONE);
  }
  [[nodiscard]] RemoteAddress at(std::size_t page) const {
    return reinterpret_cast<RemoteAddress>(memory_) + page * kPageSize;
  }
  [[nodiscard]] std::vector<RemoteAddress> all() const {
    std::vector<RemoteAddress> out;
    for (std::size_t i = 0; i < count_; ++i) {
      out.push_back(at(i));
    }
    return out;
  }

 private:
  std::size_t count_;
  std::byte* memory_;
};

int now(LiveMemory& memory, RemoteAddress address) {
  int value = -1;
  return memory.read_now(address, std::as_writable_bytes(std::span(&value, 1))) ? value : -1;
}

TEST(LiveMemory, ExpectedPagesAreReadTogetherAndKept) {
  Pages pages(3);
  LiveMemory memory(::getpid());
  memory.expect(pages.all());
  pages.set(1, 77);
  EXPECT_EQ(memory.get<int>(pages.at(1)), 1);
  EXPECT_EQ(now(memory, pages.at(1)), 77);
  memory.forget();
  EXPECT_EQ(memory.get<int>(pages.at(1)), 77);
}

TEST(LiveMemory, OnlyPagesThatWereReadCountAsUsed) {
  Pages pages(4);
  LiveMemory memory(::getpid());
  memory.expect(pages.all());
  static_cast<void>(memory.get<int>(pages.at(2) + 8));
  EXPECT_EQ(memory.used(), std::vector{pages.at(2)});
  memory.forget();
  EXPECT_TRUE(memory.used().empty());
}

TEST(LiveMemory, HolesAmongExpectedPagesHideNoOther) {
  constexpr std::size_t kCount = 200;
  Pages pages(kCount);
  for (const std::size_t hole : {0, 5, 6, 64, 199}) {
    pages.take_away(hole);
  }
  LiveMemory memory(::getpid());
  auto wanted = pages.all();
  std::reverse(wanted.begin(), wanted.end());
  wanted.push_back(0);
  wanted.push_back(pages.at(7) + 8);
  memory.expect(wanted);
  pages.set(198, 0);
  for (const std::size_t page : {1, 4, 7, 63, 65, 198}) {
    EXPECT_EQ(memory.get<int>(pages.at(page)), static_cast<int>(page)) << page;
  }
  EXPECT_FALSE(memory.get<int>(pages.at(5)).has_value());
  EXPECT_FALSE(memory.get<int>(pages.at(64)).has_value());
}

TEST(LiveMemory, AReadBeyondTheEndOfAMappingFailsAsAWhole) {
  Pages pages(3);
  pages.take_away(2);
  LiveMemory memory(::getpid());
  memory.expect(std::vector{pages.at(0), pages.at(1), pages.at(2)});
  EXPECT_TRUE(memory.get<std::uint64_t>(pages.at(2) - 8).has_value());
  EXPECT_FALSE(memory.get<std::uint64_t>(pages.at(2) - 4).has_value());
  std::vector<std::byte> crossing(kPageSize);
  EXPECT_TRUE(memory.read(pages.at(1) - 16, crossing));
  EXPECT_FALSE(memory.read(pages.at(1) + 16, crossing));
}

TEST(LiveMemory, OfAProcessThatEndedOnlyWhatWasReadBefore) {
  Pages pages(4);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  LiveMemory memory(child);
  memory.expect(std::vector{pages.at(1), pages.at(2)});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  memory.expect(pages.all());
  EXPECT_EQ(memory.get<int>(pages.at(2)), 2);
  EXPECT_FALSE(memory.get<int>(pages.at(3)).has_value());
  memory.forget();
  EXPECT_FALSE(memory.get<int>(pages.at(2)).has_value());
}

}  // namespace
}  // namespace ddpdoctor::stacks
