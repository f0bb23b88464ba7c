// SPDX-License-Identifier: Apache-2.0
// ddpdoctor collect --nats URL: one report for all nodes of a job that run --nats.
#include "collector/fleet/collect.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/metrics_server.h"
#include "cli/nats_options.h"
#include "cli/otlp_sender.h"
#include "cli/output.h"
#include "cli/reporter.h"
#include "cli/usage.h"
#include "collector/diagnosis/several_hosts.h"
#include "collector/fleet/metrics.h"
#include "collector/fleet/metrics_text.h"
#include "collector/nodes/conversation.h"
#include "collector/transport/nats.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kLongestTimeout = 7 * 86400.0;
constexpr double kOnceWait = 5;  // seconds within which a job must be heard

monitor::Occasion occasion_of(fleet::Reason reason) {
  switch (reason) {
    case fleet::Reason::kMismatch:
    case fleet::Reason::kProvable:
      return monitor::Occasion::kProvable;
    case fleet::Reason::kEnded:
      return monitor::Occasion::kEnded;
    default:
      return monitor::Occasion::kSuspected;
  }
}

/// The first finding, shortened, for other listeners.
std::string finding_of(const diagnosis::Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) {
    return {};
  }
  const detectors::Finding& first = diagnosis.findings.front();
  return fmt::format("{}\n{}\n{}", first.kind, detectors::confidence_name(first.confidence),
                     first.summary);
}

/// Receives signals that ask us to end. They are blocked, so that no snapshot is interrupted.
class EndSignals {
 public:
  EndSignals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      ::sigaddset(&set_, number);
    }
    ::sigprocmask(SIG_BLOCK, &set_, nullptr);
  }
  [[nodiscard]] bool came() const {
    const timespec now{.tv_sec = 0, .tv_nsec = 0};
    return ::sigtimedwait(&set_, nullptr, &now) > 0;
  }

 private:
  sigset_t set_{};
};

class Collect : public Action {
 public:
  explicit Collect(CLI::App& app) {
    report_.folder.clear();
    declare_nats(app, nats_, "the NATS server that the nodes talk to");
    app.add_flag("--once", options_.once, "take one snapshot of all nodes, report, and end");
    app.add_option("--hang-timeout", options_.limits.hang_timeout,
                   "seconds without a new collective before all nodes are inspected")
        ->type_name("S")
        ->capture_default_str();
    app.add_option("--report-dir", report_.folder,
                   "folder for report.json and its companions, written on a finding")
        ->type_name("DIR");
    app.add_flag("--always", report_.always, "write the report even when no problem is found");
    app.add_flag("--ci", report_.ci, "JUnit, SARIF and Markdown beside the report");
    app.add_option("--on-hang-exec", report_.on_hang_exec,
                   "shell command to run once on a hang; DDPDOCTOR_REPORT_DIR names the folder of "
                   "the report")
        ->type_name("CMD");
    app.add_option("--webhook-file", report_.webhook,
                   "file that holds the address of a chat's webhook; it gets the finding on a hang")
        ->type_name("FILE");
    app.add_option("--metrics", metrics_,
                   "serve metrics for Prometheus at [HOST]:PORT, under /metrics")
        ->type_name("ADDR");
    app.add_option("--otlp", otlp_url_,
                   "send the same metrics to an OpenTelemetry collector every 10 seconds, by "
                   "OTLP over HTTP; env = as the variables OTEL_EXPORTER_OTLP_… say")
        ->type_name("URL");
    app.add_flag("--elected", options_.elected)->group("");
    declare_output(app, output_options_);
  }

  base::Result<int> run() override {
    if (!nats_.wanted() || nats_.embedded()) {
      return base::failure("collect: no NATS server was named",
                           "ddpdoctor collect --nats nats://host:4222; with `run --nats embedded` "
                           "the node of rank 0 listens at MASTER_ADDR, 1000 above MASTER_PORT");
    }
    if (!(options_.limits.hang_timeout > 0 && options_.limits.hang_timeout <= kLongestTimeout)) {
      return base::failure(fmt::format("--hang-timeout {}: expected 0 to {} seconds",
                                       options_.limits.hang_timeout, kLongestTimeout));
    }
    if (auto sound = complete(nats_); !sound) {
      return tl::make_unexpected(sound.error());
    }
    output_.emplace(TRY(Output::create(output_options_)));
    const EndSignals signals;  // before the first thread, which takes over what is blocked
    if (!metrics_.empty()) {
      server_ = TRY(MetricsServer::listen(metrics_));
    }
    if (!otlp_url_.empty()) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
      const auto variable = [](const char* name) { return std::getenv(name); };
      const OtlpSettings settings = TRY(otlp_settings(otlp_url_, variable));
      otlp_ = TRY(OtlpSender::to(settings));
    }
    options_.job = nats_.job;
    options_.wait = options_.once ? kOnceWait : 0;
    auto transport = transport::connect_to_nats(nats_.server, "ddpdoctor collect");
    if (!transport) {
      print_error(transport.error());
      return kNotObserved;
    }
    return follow(**transport, signals);
  }

 private:
  int follow(transport::Transport& transport, const EndSignals& signals) {
    Reporter reporter(report_, [this](const diagnosis::Diagnosis& diagnosis) { show(diagnosis); });
    fleet::Collector collector(
        transport, options_,
        {.judge = [&](model::JobModel job,
                      const fleet::Suspicion& why) { return judge(reporter, std::move(job), why); },
         .complain = [](const base::Error& error) { print_error(error); },
         .notice =
             [](const fleet::Suspicion& why) {
               if (why.reason == fleet::Reason::kSilent) {
                 print_error({.what = why.text, .hint = {}});
               }
             },
         .show = [this](const fleet::JobState& state, const std::string& job,
                        double now) { show_metrics(state, job, now); },
         .stop = [this, &signals] { return stopped_ = stopped_ || signals.came(); }});
    if (auto done = collector.run(); !done) {
      print_error(done.error());
      return kNotObserved;
    }
    reporter.finish();
    publish_metrics(collector.state(), collector.job(), fleet::steady_seconds(), otlp_ != nullptr);
    if (!looked_) {
      return stopped_ ? kNothingFound : kNotObserved;
    }
    return found_ ? kFound : kNothingFound;
  }

  fleet::Verdict judge(Reporter& reporter, model::JobModel job, const fleet::Suspicion& why) {
    looked_ = true;
    finding_.clear();
    if (options_.once) {
      show(diagnosis::diagnose_hosts(job));
      return {.hang = false, .finding = finding_};
    }
    const bool last = why.reason == fleet::Reason::kEnded && !options_.elected;
    std::optional<model::JobModel> kept;
    if (last) {
      kept = job;
    }
    const monitor::Opinion opinion = reporter.hear(std::move(job), occasion_of(why.reason));
    if (kept && !shown_) {
      show(diagnosis::diagnose_hosts(*kept));
    }
    return {.hang = opinion.hang && opinion.finding, .finding = finding_};
  }

  void show_metrics(const fleet::JobState& state, const std::string& job, double now) {
    if (now >= next_page_) {
      next_page_ = now + 1;
      publish_metrics(state, job, now, otlp_ && otlp_->due(now));
    }
  }

  void publish_metrics(const fleet::JobState& state, const std::string& job, double now,
                       bool send) {
    if (!server_ && !send) {
      return;
    }
    const auto metrics = fleet::metrics(state, job, now, findings_);
    if (server_) {
      server_->show(fleet::prometheus_text(metrics));
    }
    if (send) {
      otlp_->send(fleet::otlp_json(metrics, nodes::now_seconds(), viewer::tool_version()), now);
    }
    if (const auto problem = otlp_ ? otlp_->complaint() : std::nullopt) {
      print_error(*problem);
    }
  }

  void show(const diagnosis::Diagnosis& diagnosis) {
    if (!diagnosis.findings.empty()) {
      ++findings_[diagnosis.findings.front().kind];
    }
    shown_ = true;
    found_ = output_->present(diagnosis) == kFound || found_;
    finding_ = finding_of(diagnosis);
  }

  NatsOptions nats_;
  fleet::CollectOptions options_;
  ReportOptions report_;
  OutputOptions output_options_;
  std::optional<Output> output_;
  std::string metrics_;
  std::unique_ptr<MetricsServer> server_;
  std::string otlp_url_;
  std::unique_ptr<OtlpSender> otlp_;
  double next_page_ = 0;
  std::map<std::string, std::uint64_t> findings_;
  std::string finding_;  // the finding that was shown last
  bool stopped_ = false;
  bool looked_ = false;
  bool shown_ = false;
  bool found_ = false;
};

}  // namespace

std::unique_ptr<Action> declare_collect(CLI::App& app) {
  return std::make_unique<Collect>(app);
}

}  // namespace ddpdoctor::cli
