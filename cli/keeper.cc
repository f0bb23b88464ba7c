// SPDX-License-Identifier: Apache-2.0
#include "cli/keeper.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

#include <sys/wait.h>

namespace ddpdoctor::cli {
namespace {

constexpr std::chrono::milliseconds kTimeToAnswer{12000};  // for a program that ends by itself
constexpr std::chrono::milliseconds kTimeToEnd{2000};      // after SIGTERM
constexpr std::chrono::milliseconds kKeeperTick{20};
constexpr int kLongestFinish = 20000;  // milliseconds
constexpr char kEndOfWord = '\n';

struct Program {
  pid_t pid = 0;
  bool patient = false;
};

bool ended_within(pid_t pid, std::chrono::milliseconds limit) {
  for (std::chrono::milliseconds waited{0}; waited <= limit; waited += kKeeperTick) {
    if (::waitpid(pid, nullptr, WNOHANG) != 0) {
      return true;
    }
    std::this_thread::sleep_for(kKeeperTick);
  }
  return false;
}

void end(const Program& program) {
  if (program.patient && ended_within(program.pid, kTimeToAnswer)) {
    return;
  }
  ::kill(program.pid, SIGTERM);
  if (!ended_within(program.pid, kTimeToEnd)) {
    ::kill(program.pid, SIGKILL);
    ::waitpid(program.pid, nullptr, 0);
  }
}

[[noreturn]] void become(std::vector<std::string>& words) {
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

/// "patient", the number of words, then the words, one line each.
std::vector<std::string> read_order(FILE* orders, bool& patient) {
  std::array<char, 4096> line{};
  std::vector<std::string> words;
  std::size_t wanted = 2;
  while (words.size() < wanted &&
         std::fgets(line.data(), static_cast<int>(line.size()), orders) != nullptr) {
    std::string word(line.data());
    if (!word.empty() && word.back() == kEndOfWord) {
      word.pop_back();
    }
    words.push_back(std::move(word));
    if (words.size() == 2) {
      wanted = 2 + std::strtoul(words[1].c_str(), nullptr, 10);
    }
  }
  if (words.size() < wanted || wanted == 2) {
    return {};
  }
  patient = words[0] == "patient";
  return {words.begin() + 2, words.end()};
}

/// The keeper process itself; runs until this program has ended.
[[noreturn]] void keep(int orders) {
  FILE* const stream = ::fdopen(orders, "r");
  std::vector<Program> programs;
  while (stream != nullptr) {
    bool patient = false;
    std::vector<std::string> words = read_order(stream, patient);
    if (words.empty()) {
      break;
    }
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(orders);
      become(words);
    }
    programs.push_back({.pid = pid, .patient = patient});
  }
  while (!programs.empty()) {
    end(programs.back());
    programs.pop_back();
  }
  ::_exit(0);
}

}  // namespace

base::Result<Keeper> Keeper::start() {
  std::array<int, 2> orders{};
  std::array<int, 2> life{};
  if (::pipe2(orders.data(), O_CLOEXEC) != 0 || ::pipe2(life.data(), O_CLOEXEC) != 0) {
    return base::failure(std::string("--nats: no pipe: ") + std::strerror(errno));
  }
  base::UniqueFd orders_in(orders[0]);
  base::UniqueFd orders_out(orders[1]);
  base::UniqueFd life_in(life[0]);
  base::UniqueFd life_out(life[1]);
  const pid_t between = ::fork();
  if (between == 0) {
    ::setsid();
    if (::fork() != 0) {
      ::_exit(0);
    }
    const pid_t self = ::getpid();
    const ssize_t told = ::write(life_out.get(), &self, sizeof self);
    static_cast<void>(told);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) {
      ::signal(number, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    orders_out.reset();
    life_in.reset();
    const base::UniqueFd nothing(::open("/dev/null", O_RDONLY));
    ::dup2(nothing.get(), STDIN_FILENO);
    keep(orders_in.get());
  }
  if (between < 0) {
    return base::failure(std::string("--nats: cannot fork: ") + std::strerror(errno));
  }
  ::waitpid(between, nullptr, 0);
  life_out.reset();
  pid_t keeper = 0;
  if (::read(life_in.get(), &keeper, sizeof keeper) != static_cast<ssize_t>(sizeof keeper)) {
    return base::failure("--nats: no process can be started beside the job", "see ulimit -u");
  }
  return Keeper(keeper, std::move(orders_out), std::move(life_in));
}

void Keeper::run(const std::vector<std::string>& command, bool patient) {
  std::string order = (patient ? "patient\n" : "plain\n") + std::to_string(command.size()) + "\n";
  for (const std::string& word : command) {
    order += word + kEndOfWord;
  }
  const ssize_t written = ::write(orders_.get(), order.data(), order.size());
  static_cast<void>(written);  // without a keeper there is no collector on this node
}

void Keeper::finish() {
  orders_.reset();
  pollfd end{.fd = end_.get(), .events = POLLIN, .revents = 0};
  ::poll(&end, 1, kLongestFinish);
}

}  // namespace ddpdoctor::cli
