// SPDX-License-Identifier: Apache-2.0
// ddpdoctor report FILE…: what captures of a job show, afterwards.
#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/input_formats.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/usage.h"
#include "collector/diagnosis/several_hosts.h"
#include "viewer/layout.h"

namespace ddpdoctor::cli {

namespace {

/// What can be read, before the exit statuses of --help.
void describe_inputs(CLI::App& app) {
  constexpr std::size_t kWidth = 100;
  std::string text;
  for (const std::string& line : viewer::wrap("Reads: " + readable_formats(), kWidth)) {
    text += (text.empty() ? "" : "\n  ") + line;
  }
  std::string footer = app.get_footer();
  footer.insert(std::min(footer.find("Exit status: "), footer.size()), text + "\n\n");
  app.footer(footer);
}

class Report : public Action {
 public:
  explicit Report(CLI::App& app) {
    app.add_option("files", files_, "captures, dumps and logs of one job, or folders of them")
        ->type_name("FILE");
    app.add_option("--log", logs_, "output of the job or of one rank, read as text; repeatable")
        ->type_name("FILE")
        ->expected(1)
        ->take_all();
    declare_output(app, output_);
    describe_inputs(app);
  }

  base::Result<int> run() override {
    if (files_.empty() && logs_.empty()) {
      return base::failure("report: no file was given",
                           "ddpdoctor report FILE…, with captures of one job");
    }
    const Output output = TRY(Output::create(output_));
    const Progress progress("reading …");
    auto job = read_inputs(files_, logs_);
    if (!job) {
      print_error(job.error());
      return kNotObserved;
    }
    return output.present(diagnosis::diagnose_hosts(*job));
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> logs_;
  OutputOptions output_;
};

}  // namespace

std::unique_ptr<Action> declare_report(CLI::App& app) {
  return std::make_unique<Report>(app);
}

}  // namespace ddpdoctor::cli
