// SPDX-License-Identifier: Apache-2.0
// ddpdoctor watch [PID]: shows a running job live.
#include <functional>
#include <limits>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/nats_options.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "collector/fleet/collect.h"
#include "collector/fleet/live.h"
#include "collector/monitor/live.h"
#include "collector/transport/nats.h"
#include "viewer/live.h"

namespace ddpdoctor::cli {

namespace {

constexpr double kShortestInterval = 0.1;
constexpr double kLongestPause = 3600;
constexpr double kWait = 5;    // seconds within which a job on many nodes must be heard
constexpr double kHear = 0.7;  // seconds in which every node sends a message

class Watch : public Action {
 public:
  explicit Watch(CLI::App& app) {
    app.add_option("pid", pid_, "any process of the job, or the ddpdoctor run that started it")
        ->type_name("PID");
    app.add_option("--spool", spool_, "the spool folder of a run instead of a pid")
        ->type_name("DIR");
    declare_nats(app, nats_, "a job on many nodes that run --nats, by its NATS server");
    app.add_option("--interval", interval_, "seconds between two snapshots")
        ->type_name("S")
        ->capture_default_str();
    app.add_flag("--once", once_, "one snapshot as plain text");
  }

  base::Result<int> run() override {
    if (!(interval_ >= kShortestInterval && interval_ <= kLongestPause)) {
      return base::failure(fmt::format("--interval {}: expected {} to {} seconds", interval_,
                                       kShortestInterval, kLongestPause));
    }
    if (nats_.wanted()) {
      return watch_nodes();
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
    return watch([&source] { return source->look(); });
  }

 private:
  using Look = std::function<base::Result<graph::LiveView>()>;

  int watch(const Look& look) {
    auto view = look();
    if (!view) {
      print_error(view.error());
      return kNotObserved;
    }
    const bool terminal = ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
    return terminal && !once_ ? live(look, std::move(*view)) : plain(look, std::move(*view));
  }

  base::Result<int> watch_nodes() {
    if (!pid_.empty() || !spool_.empty()) {
      return base::failure("watch: --nats and a pid or --spool were given",
                           "give only one of them");
    }
    if (auto sound = complete(nats_); !sound) {
      return tl::make_unexpected(sound.error());
    }
    auto transport = transport::connect_to_nats(nats_.server, "ddpdoctor watch");
    if (!transport) {
      print_error(transport.error());
      return kNotObserved;
    }
    fleet::Collector collector(**transport, {.job = nats_.job, .wait = kWait}, {});
    if (auto begun = collector.begin(); !begun) {
      print_error(begun.error());
      return kNotObserved;
    }
    return watch([&collector] { return seen(collector); });
  }

  /// The state of all nodes, once each had time to report it.
  static base::Result<graph::LiveView> seen(fleet::Collector& collector) {
    const double until = fleet::steady_seconds() + kHear;
    while (fleet::steady_seconds() < until) {
      collector.listen(std::chrono::milliseconds(20));
    }
    return fleet::live_view(collector.state(), collector.job(), fleet::steady_seconds());
  }

  [[nodiscard]] std::chrono::milliseconds interval() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(interval_));
  }

  /// Prints a snapshot per interval until the job ends or stdout is closed.
  [[nodiscard]] int plain(const Look& look, graph::LiveView view) const {
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
      auto next = look();
      if (!next) {
        print_error(next.error());
        return kNothingFound;  // it was seen before and has ended
      }
      view = std::move(*next);
    }
  }

  [[nodiscard]] int live(const Look& look, graph::LiveView view) const {
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
        auto next = wake == Wake::kTime ? look() : base::Result<graph::LiveView>(view);
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

  NatsOptions nats_;
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
