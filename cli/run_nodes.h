// SPDX-License-Identifier: Apache-2.0
// run --nats: what a node does in addition to running its part of the job. The node of rank 0 also
// collects if no other process does and, with `--nats embedded`, runs the server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/keeper.h"
#include "cli/nats_options.h"
#include "collector/fleet/node_link.h"

namespace ddpdoctor::cli {

class RunNodes {
 public:
  /// `collector_words`: options of the collector that this node may have to start. Call before the
  /// job is launched, and while there is one thread.
  static base::Result<std::unique_ptr<RunNodes>> create(const NatsOptions& options,
                                                        std::vector<std::string> collector_words);
  RunNodes(const RunNodes&) = delete;
  RunNodes& operator=(const RunNodes&) = delete;
  RunNodes(RunNodes&&) = delete;
  RunNodes& operator=(RunNodes&&) = delete;
  ~RunNodes();

  /// Connects and starts publishing; call after the job was launched.
  void begin(const std::string& spool);
  [[nodiscard]] fleet::NodeLink& link() {
    return *link_;
  }
  /// The node's part has ended.
  void leave(const model::JobModel* job, int status);

 private:
  RunNodes(NatsOptions options, std::vector<std::string> words, Keeper keeper);

  base::Result<std::unique_ptr<transport::Transport>> connect(const std::string& place) const;
  void serve(const std::string& place);
  void collect(const std::string& job);

  NatsOptions options_;
  std::vector<std::string> collector_words_;
  Keeper keeper_;
  std::string store_;  // folder of the embedded server; empty = none
  std::string url_;    // of the server; empty = unknown so far
  std::unique_ptr<fleet::NodeLink> link_;
};

}  // namespace ddpdoctor::cli
