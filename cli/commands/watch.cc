// SPDX-License-Identifier: Apache-2.0
// ddpdoctor watch [PID]: a running job, live.
#include <limits>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "collector/monitor/live.h"
#include "viewer/live.h"

namespace ddpdoctor::cli {

namespace {

constexpr double kShortestInterval = 0.1;
constexpr double kLongestInterval = 3600;

class Watch : public Action {
 public:
  explicit Watch(CLI::App& app) {
    app.add_option("pid", pid_, "any process of the job, or the ddpdoctor run that started it")
        ->type_name("PID");
    app.add_option("--spool", spool_, "the spool folder of a run instead of a pid")
        ->type_name("DIR");
    app.add_option("--interval", interval_, "seconds between two snapshots")
        ->type_name("S")
        ->capture_default_str();
    app.add_flag("--once", once_, "one snapshot as plain text");
  }

  base::Result<int> run() override {
    if (!(interval_ >= kShortestInterval && interval_ <= kLongestInterval)) {
      return base::failure(fmt::format("--interval {}: expected {} to {} seconds", interval_,
                                       kShortestInterval, kLongestInterval));
    }
    if (!pid_.empty() && !spool_.empty()) {
      return base::failure("watch: a pid and --spool were given", "give only one of them");
    }
    long pid = 0;
    if (!pid_.empty()) {
      pid = TRY(number(pid_, kPid, 1, std::numeric_limits<pid_t>::max()));
    }
    auto source = !spool_.empty() ? monitor::LiveSource::of_spool(spool_)
                  : pid != 0      ? monitor::LiveSource::of_pid(static_cast<pid_t>(pid))
                                  : monitor::LiveSource::only_one();
    if (!source) {
      print_error(source.error());
      return kNotObserved;
    }
    auto view = source->look();
    if (!view) {
      print_error(view.error());
      return kNotObserved;
    }
    const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
    return terminal && !once_ ? live(*source, std::move(*view)) : plain(*source, std::move(*view));
  }

 private:
  [[nodiscard]] std::chrono::milliseconds interval() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(interval_));
  }

  /// A snapshot each interval until the job ends or nobody reads.
  [[nodiscard]] int plain(monitor::LiveSource& source, graph::LiveView view) const {
    while (true) {
      std::string out;
      for (const std::string& line : viewer::live_lines(view, {.width = text_width()})) {
        out += line + "\n";
      }
      if (!print(out + (once_ ? "" : "\n"))) {
        return kNotObserved;
      }
      if (once_ || view.ended || std::ferror(stdout) != 0) {
        return kNothingFound;
      }
      std::this_thread::sleep_for(interval());
      auto next = source.look();
      if (!next) {
        print_error(next.error());
        return kNothingFound;  // it was seen; now it is gone
      }
      view = std::move(*next);
    }
  }

  [[nodiscard]] int live(monitor::LiveSource& source, graph::LiveView view) const {
    std::string last;
    {
      LiveScreen screen;
      while (true) {
        auto lines = viewer::live_lines(
            view,
            {.width = screen.width(), .height = screen.height() - 1, .colour = colour_wanted()});
        lines.emplace_back("q quits");
        screen.draw(lines);
        const Wake wake = screen.wait(interval());
        if (wake == Wake::kQuit) {
          break;
        }
        auto next = wake == Wake::kTime ? source.look() : base::Result<graph::LiveView>(view);
        if (!next || next->ended) {
          last = next ? "the job has ended\n" : next.error().what + "\n";
          break;
        }
        view = std::move(*next);
      }
    }
    print(last);
    return kNothingFound;
  }

  std::string pid_;
  std::string spool_;
  double interval_ = 1;
  bool once_ = false;
};

}  // namespace

std::unique_ptr<Action> declare_watch(CLI::App& app) {
  return std::make_unique<Watch>(app);
}

}  // namespace ddpdoctor::cli
