// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program.h"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

namespace ddpdoctor::tests {

namespace {

constexpr unsigned kPatience = 60;  // seconds

[[noreturn]] void become(const std::vector<std::string>& words, const std::string& out,
                         const std::string& err) {
  const std::array<std::pair<int, int>, 3> files{
      {{::open("/dev/null", O_RDONLY), 0},
       {::open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1},
       {::open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2}}};
  for (const auto& [from, to] : files) {
    ::dup2(from, to);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(
        word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast): execv's signature
  }
  arguments.push_back(nullptr);
  ::setenv("NO_COLOR", "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread after fork
  ::alarm(kPatience);
  ::execv(arguments.front(), arguments.data());
  ::_exit(127);
}

}  // namespace

Ended run(const std::vector<std::string>& words) {
  const TempDir folder;
  const std::string out = folder.path("out");
  const std::string err = folder.path("err");
  const pid_t child = ::fork();
  if (child == 0) {
    become(words, out, err);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text(out),
          .err = read_text(err)};
}

Ended ddpdoctor(std::vector<std::string> words) {
  words.insert(words.begin(), built_file("ddpdoctor"));
  return run(words);
}

}  // namespace ddpdoctor::tests
