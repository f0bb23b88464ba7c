// SPDX-License-Identifier: Apache-2.0
// ddpdoctor explain [KIND]: the page of a cause, or the list of all.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "collector/detectors/detector.h"
#include "viewer/causes.h"

namespace ddpdoctor::cli {

namespace {

base::Error unknown(const std::string& kind) {
  std::vector<std::string_view> kinds;
  for (const detectors::Detector* detector : detectors::catalog()) {
    kinds.push_back(detector->kind);
  }
  std::string meant;
  for (const std::string_view each : near(kind, kinds)) {
    meant += (meant.empty() ? "" : ", ") + std::string(each);
  }
  return {.what = fmt::format("unknown finding: {}", kind),
          .hint = meant.empty() ? "all kinds: ddpdoctor explain"
                                : fmt::format("did you mean {}?", meant)};
}

class Explain : public Action {
 public:
  explicit Explain(CLI::App& app) {
    app.add_option("kind", kind_, "as a report names it, such as missing-rank; none: the list")
        ->type_name("KIND");
    app.add_option("--format", format_, "text, or markdown: all pages as one document")
        ->type_name("FORMAT")
        ->capture_default_str();
  }

  base::Result<int> run() override {
    if (format_ != "text" && format_ != "markdown") {
      return base::failure(fmt::format("--format {}: expected text or markdown", format_));
    }
    if (kind_.empty()) {
      return print(format_ == "text" ? viewer::causes_list() : viewer::causes_markdown())
                 ? kNothingFound
                 : kNotObserved;
    }
    const detectors::Detector* detector = detectors::find(kind_);
    if (detector == nullptr) {
      return tl::make_unexpected(unknown(kind_));
    }
    return print(viewer::cause_page(*detector)) ? kNothingFound : kNotObserved;
  }

 private:
  std::string kind_;
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Action> declare_explain(CLI::App& app) {
  return std::make_unique<Explain>(app);
}

}  // namespace ddpdoctor::cli
