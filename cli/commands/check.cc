// SPDX-License-Identifier: Apache-2.0
// ddpdoctor check [-- CMD]: what on this machine will break a job before it starts.
#include <charconv>
#include <system_error>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "collector/preflight/survey.h"
#include "viewer/preflight.h"

namespace ddpdoctor::cli {

namespace {

constexpr long kMostRanks = 65536;
constexpr long kMostWorkers = 4096;
constexpr std::chrono::milliseconds kPatience{5000};  // for all checks together

preflight::Environment environment() {
  preflight::Environment out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
      out.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return out;
}

/// "64M", "1.5GiB", "4096": bytes.
base::Result<double> byte_count(const std::string& text) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto used = static_cast<std::size_t>(end - text.data());
  constexpr double kStep = 1024;
  constexpr double kMost = 1e15;
  const std::string unit = text.substr(used);
  constexpr std::string_view kUnits = "KMGT";
  constexpr int kToUpper = ~0x20;
  std::size_t power = 0;
  if (!unit.empty() && unit != "B") {
    power = kUnits.find(static_cast<char>(unit.front() & kToUpper)) + 1;  // npos + 1 is 0
  }
  const bool known =
      unit.empty() || unit == "B" ||
      (power > 0 && (unit.size() == 1 || unit.substr(1) == "iB" || unit.substr(1) == "B"));
  for (std::size_t i = 0; i < power; ++i) {
    value *= kStep;
  }
  if (error != std::errc() || !known || !(value > 0 && value <= kMost)) {
    return base::failure(fmt::format("--batch-bytes {}: expected a size", base::printable(text)),
                         "a number of bytes such as 64M or 1.5GiB");
  }
  return value;
}

class Check : public Action {
 public:
  explicit Check(CLI::App& app) {
    app.add_option("--ranks", ranks_, "ranks that will start on this machine")->type_name("N");
    app.add_option("--workers", workers_, "DataLoader workers of each rank")->type_name("N");
    app.add_option("--batch-bytes", batch_, "size of one batch, such as 64M")->type_name("B");
    app.add_option("--format", format_, "text or json")->type_name("FORMAT")->capture_default_str();
    app.add_option("command", command_, "the job's command, after --: read, never started")
        ->type_name("CMD");
    app.positionals_at_end();
  }

  base::Result<int> run() override {
    if (format_ != "text" && format_ != "json") {
      return base::failure(fmt::format("--format {}: expected text or json", format_));
    }
    preflight::Setting setting{.plan = TRY(given()), .environment = environment()};
    setting.plan = preflight::plan_of(command_, setting.environment, setting.plan);
    const auto answers = preflight::survey(preflight::checks(), setting, kPatience);
    const std::string shown = format_ == "json"
                                  ? viewer::preflight_json(answers)
                                  : viewer::preflight_text(answers, text_width(), colour_wanted());
    if (!print(shown)) {
      return kNotObserved;
    }
    return preflight::will_break(answers) ? kFound : kNothingFound;
  }

 private:
  [[nodiscard]] base::Result<preflight::Plan> given() const {
    preflight::Plan plan;
    if (!ranks_.empty()) {
      plan.ranks_here = static_cast<int>(TRY(number(ranks_, "value of --ranks", 1, kMostRanks)));
    }
    if (!workers_.empty()) {
      plan.workers = static_cast<int>(TRY(number(workers_, "value of --workers", 0, kMostWorkers)));
    }
    if (!batch_.empty()) {
      plan.batch_bytes = TRY(byte_count(batch_));
    }
    return plan;
  }

  std::string ranks_;
  std::string workers_;
  std::string batch_;
  std::string format_ = "text";
  std::vector<std::string> command_;
};

}  // namespace

std::unique_ptr<Action> declare_check(CLI::App& app) {
  return std::make_unique<Check>(app);
}

}  // namespace ddpdoctor::cli
