// SPDX-License-Identifier: Apache-2.0
// ddpdoctor explain [KIND]: the page of a cause, or the list of all.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "collector/detectors/detector.h"

namespace ddpdoctor::cli {

namespace {

std::string list_of_kinds() {
  std::size_t width = 0;
  for (const detectors::Detector* detector : detectors::catalog()) {
    width = std::max(width, detector->kind.size());
  }
  std::string out;
  for (const detectors::Detector* detector : detectors::catalog()) {
    out += fmt::format("{:<{}}  {}\n", detector->kind, width, detector->title);
  }
  return out;
}

base::Error unknown(const std::string& kind) {
  std::vector<std::string_view> kinds;
  for (const detectors::Detector* detector : detectors::catalog()) {
    kinds.push_back(detector->kind);
  }
  std::string meant;
  for (const std::string_view each : near(kind, kinds)) {
    meant += (meant.empty() ? "" : ", ") + std::string(each);
  }
  return {
      .what = fmt::format("{} is no kind of finding", kind),
      .hint = meant.empty() ? "all kinds: ddpdoctor explain" : fmt::format("perhaps: {}", meant)};
}

class Explain : public Action {
 public:
  explicit Explain(CLI::App& app) {
    app.add_option("kind", kind_, "as a report names it, such as missing-rank; none: the list")
        ->type_name("KIND");
  }

  base::Result<int> run() override {
    if (kind_.empty()) {
      return print(list_of_kinds()) ? kNothingFound : kNotObserved;
    }
    const detectors::Detector* detector = detectors::find(kind_);
    if (detector == nullptr) {
      return tl::make_unexpected(unknown(kind_));
    }
    const std::string page = fmt::format("{}: {}\n\n{}\n", detector->kind, detector->title,
                                         base::trim(detector->explanation));
    return print(page) ? kNothingFound : kNotObserved;
  }

 private:
  std::string kind_;
};

}  // namespace

std::unique_ptr<Action> declare_explain(CLI::App& app) {
  return std::make_unique<Explain>(app);
}

}  // namespace ddpdoctor::cli
