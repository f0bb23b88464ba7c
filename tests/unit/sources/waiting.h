// SPDX-License-Identifier: Apache-2.0
// What the tests of waiting share: the answer for one process, pipes, and a process that does
// nothing.
#pragma once

#include <array>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/sources/waits/targets.h"
#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {

/// What the main thread of the first process waits for.
inline std::optional<WaitTarget> wait_of(const std::vector<pid_t>& pids) {
  std::vector<stacks::ProcessStacks> stacks;
  for (const pid_t pid : pids) {
    stacks.push_back(captured(pid));
  }
  const auto targets = wait_targets(job_of(pids), stacks);
  const auto found = targets.find({pids.front(), pids.front()});
  return found == targets.end() ? std::nullopt : std::optional(found->second);
}

inline std::string pid_target(pid_t pid) {
  return fmt::format("pid:{}", pid);
}

/// A process that holds what it inherited and does nothing.
inline void hold() {
  while (true) {
    ::pause();
  }
}

struct Pipe {
  Pipe() {
    [[maybe_unused]] const int status = ::pipe2(ends.data(), O_CLOEXEC);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  Pipe(Pipe&&) = delete;
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  /// Closes the other end (in a child).
  void keep(int end) const {
    ::close(ends.at(static_cast<std::size_t>(1 - end)));
  }
  std::array<int, 2> ends{};
};

inline void expect(const std::optional<WaitTarget>& found, const std::string& kind,
                   const std::string& target) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, kind) << found->detail;
  EXPECT_EQ(found->target, target) << found->detail;
}

}  // namespace ddpdoctor::sources
