// SPDX-License-Identifier: Apache-2.0
#include "cli/run_nodes.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/host_name.h"
#include "cli/embedded_server.h"
#include "cli/file_writer.h"
#include "cli/usage.h"
#include "collector/monitor/process_tree.h"
#include "collector/transport/nats.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kServerStarts = 8;  // seconds for the embedded server on another node to start

std::string own_program() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

}  // namespace

RunNodes::RunNodes(NatsOptions options, std::vector<std::string> words, Keeper keeper)
    : options_(std::move(options)),
      collector_words_(std::move(words)),
      keeper_(std::move(keeper)),
      url_(options_.embedded() ? "" : options_.server.url) {}

base::Result<std::unique_ptr<RunNodes>> RunNodes::create(const NatsOptions& options,
                                                         std::vector<std::string> words) {
  NatsOptions named = options;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
  const char* const slurm = std::getenv("SLURM_JOB_ID");
  if (named.job.empty() && slurm != nullptr && *slurm != '\0') {
    named.job = fmt::format("slurm-{}", slurm);
  }
  Keeper keeper = TRY(Keeper::start());
  monitor::leave_out(keeper.pid());
  return std::unique_ptr<RunNodes>(
      new RunNodes(std::move(named), std::move(words), std::move(keeper)));
}

RunNodes::~RunNodes() {
  link_.reset();
  keeper_.finish();
  if (!store_.empty()) {
    std::error_code error;
    std::filesystem::remove_all(store_, error);
  }
}

void RunNodes::begin(const std::string& spool) {
  link_ = std::make_unique<fleet::NodeLink>(
      options_.job, spool,
      fleet::NodeServices{.connect = [this](const std::string& place) { return connect(place); },
                          .lead_node = [this](const std::string& place) { serve(place); },
                          .collect = [this](const std::string& job) { collect(job); },
                          .patience = options_.embedded() ? kServerStarts : 0,
                          .complain =
                              [](const base::Error& error) {
                                print_error({.what = error.what + "; the job continues",
                                             .hint = error.hint});
                              }});
}

void RunNodes::leave(const model::JobModel* job, int status) {
  link_->leave(job, status);
}

base::Result<std::unique_ptr<transport::Transport>> RunNodes::connect(
    const std::string& place) const {
  NatsOptions named = options_;
  if (options_.embedded()) {
    if (place.empty()) {
      return nullptr;
    }
    named.server.url = TRY(embedded_url(place));
  }
  return transport::connect_to_nats(named.server, "ddpdoctor run on " + base::host_name());
}

void RunNodes::serve(const std::string& place) {
  if (!options_.embedded()) {
    return;
  }
  const auto url = embedded_url(place);
  const std::string program = nats_server_program();
  if (!url || program.empty()) {
    print_error(url ? base::Error{.what = "--nats embedded: nats-server is not installed on the "
                                          "node of rank 0; the job continues",
                                  .hint = "apt-get install nats-server"}
                    : url.error());
    return;
  }
  url_ = *url;
  std::error_code error;
  std::string pattern = std::filesystem::temp_directory_path(error).string() + "/ddpdoctor-XXXXXX";
  store_ = ::mkdtemp(pattern.data()) != nullptr ? pattern : "";
  const std::string path = store_ + "/server.conf";
  const auto text = server_configuration(options_.server, url_, store_);
  const auto written = text && !store_.empty() ? write_whole(path, *text) : base::Result<void>();
  if (store_.empty() || !text || !written) {
    print_error(!text      ? text.error()
                : !written ? written.error()
                           : base::Error{.what = "--nats embedded: no folder for the server",
                                         .hint = "set TMPDIR"});
    return;
  }
  keeper_.run({program, "--config", path}, /*patient=*/false);
}

void RunNodes::collect(const std::string& job) {
  std::string url = url_;
  if (options_.embedded()) {
    // A host name may mean another address here than on other machines; the port is the same.
    url = "nats://127.0.0.1" + url_.substr(url_.rfind(':'));
  }
  std::vector<std::string> command{own_program(), "collect", "--elected"};
  for (const auto& words : {words_of(options_, url, job), collector_words_}) {
    command.insert(command.end(), words.begin(), words.end());
  }
  keeper_.run(command, /*patient=*/true);
}

}  // namespace ddpdoctor::cli
