// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.h"

#include <array>
#include <csignal>
#include <poll.h>
#include <string_view>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/signalfd.h>

namespace ddpdoctor::cli {

namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kUsualHeight = 24;

sigset_t seen_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP}) {
    sigaddset(&set, number);
  }
  return set;
}

void send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, text.data(), text.size());
    if (done <= 0) {
      return;  // the terminal was closed; wait() will detect it
    }
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

winsize size_of_terminal() {
  winsize size{};
  ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

bool asks_to_quit(std::string_view keys) {
  constexpr char kEnd = '\x04';  // Ctrl-D
  return keys.find_first_of(std::string{'q', 'Q', kEnd}) != std::string_view::npos;
}

}  // namespace

LiveScreen::LiveScreen() {
  const sigset_t set = seen_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  take();
}

LiveScreen::~LiveScreen() {
  give_back();
}

void LiveScreen::take() {
  if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios raw = before_;
    raw.c_lflag &= static_cast<tcflag_t>(~(ICANON | ECHO));
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    changed_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
  }
  send(kEnter);
}

void LiveScreen::give_back() const {
  send(kLeave);
  if (changed_) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
}

std::size_t LiveScreen::width() const {
  const auto columns = size_of_terminal().ws_col;
  return columns > 0 ? columns : kUsualWidth;
}

std::size_t LiveScreen::height() const {
  const auto rows = size_of_terminal().ws_row;
  return rows > 0 ? rows : kUsualHeight;
}

void LiveScreen::draw(const std::vector<std::string>& lines) const {
  std::string out = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out += lines[i] + "\x1b[K" + (i + 1 < lines.size() ? "\r\n" : "");
  }
  send(out + "\x1b[J");
}

/// True when it asks to quit.
bool LiveScreen::take_signal() {
  signalfd_siginfo info{};
  bool quit = false;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGWINCH) {
      resized_ = true;
    } else if (number == SIGTSTP) {
      give_back();
      ::raise(SIGSTOP);
      take();
      resized_ = true;
    } else {
      quit = true;
    }
  }
  return quit;
}

Wake LiveScreen::wait(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    std::array<pollfd, 2> sources{pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(sources.data(), sources.size(),
                             left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (sources[0].revents != 0 && take_signal()) {
      return Wake::kQuit;
    }
    if (sources[1].revents != 0) {
      std::array<char, 64> keys{};
      const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
      const bool hung_up = (sources[1].revents & (POLLHUP | POLLERR)) != 0;
      if (hung_up || (count > 0 && asks_to_quit({keys.data(), static_cast<std::size_t>(count)}))) {
        return Wake::kQuit;
      }
    }
    if (resized_) {
      resized_ = false;
      return Wake::kResized;
    }
    if (ready <= 0 && left.count() <= 0) {
      return Wake::kTime;
    }
  }
}

}  // namespace ddpdoctor::cli
