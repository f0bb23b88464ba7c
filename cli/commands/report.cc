// SPDX-License-Identifier: Apache-2.0
// ddpdoctor report FILE…: what captures of a job show, afterwards.
#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/input_formats.h"
#include "cli/inputs.h"
#include "cli/nats_options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/usage.h"
#include "collector/diagnosis/several_hosts.h"
#include "collector/fleet/kept_recordings.h"
#include "collector/transport/nats.h"
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
    declare_nats(app, nats_, "read the recordings of the job that this NATS server keeps");
    declare_output(app, output_);
    describe_inputs(app);
  }

  base::Result<int> run() override {
    if (files_.empty() && logs_.empty() && !nats_.wanted()) {
      return base::failure("report: no file was given",
                           "ddpdoctor report FILE…, with captures of one job");
    }
    if (nats_.embedded()) {
      return base::failure("report: --nats embedded names no server",
                           "its recordings end with the job; --spool DIR keeps them in a folder");
    }
    if (auto sound = complete(nats_); !sound) {
      return tl::make_unexpected(sound.error());
    }
    const Output output = TRY(Output::create(output_));
    const Progress progress("reading …");
    auto job = read();
    if (!job) {
      print_error(job.error());
      return kNotObserved;
    }
    return output.present(diagnosis::diagnose_hosts(*job));
  }

 private:
  base::Result<model::JobModel> read() const {
    std::vector<FetchedInput> fetched;
    std::vector<base::Error> problems;
    if (nats_.wanted()) {
      const auto server = TRY(transport::connect_to_nats(nats_.server, "ddpdoctor report"));
      for (auto& one : TRY(fleet::kept_recordings(*server, nats_.job, problems))) {
        fetched.push_back({.name = std::move(one.name), .bytes = std::move(one.bytes)});
      }
    }
    auto job = read_inputs(files_, logs_, fetched);
    for (const base::Error& problem : problems) {
      if (job) {
        job->coverage.warnings.push_back(problem.what);
      }
    }
    return job;
  }

  NatsOptions nats_;
  std::vector<std::string> files_;
  std::vector<std::string> logs_;
  OutputOptions output_;
};

}  // namespace

std::unique_ptr<Action> declare_report(CLI::App& app) {
  return std::make_unique<Report>(app);
}

}  // namespace ddpdoctor::cli
