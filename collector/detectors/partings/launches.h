// SPDX-License-Identifier: Apache-2.0
// The collectives that calls in the user's source launch, directly or in the functions that they
// run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/detectors/partings/launch.h"
#include "collector/graph/wrapped_forward.h"
#include "collector/model/job_model.h"
#include "collector/program/origin/callees.h"
#include "collector/program/origin/objects.h"

namespace ddpdoctor::detectors {

class Launches {
 public:
  /// `job` must outlive this.
  explicit Launches(const model::JobModel& job);
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;
  Launches(Launches&&) = delete;
  Launches& operator=(Launches&&) = delete;
  ~Launches() = default;

  /// The launches of one call, in source order; for an `if`, those of both branches.
  std::vector<Launch> of(program::Node call, const program::Where& where);
  /// The launch of the call itself: a function of torch.distributed, or of a library that calls
  /// one.
  std::optional<Launch> made_by(program::Node call, const program::Where& where) const;

  /// The launches of a function, in source order.
  const std::vector<Launch>& of_function(const program::Callee& callee);
  /// The operations that a function launches on every path through it.
  const std::vector<std::string>& always(const program::Callee& callee);

  /// The user's functions that a call runs; several if its object may have several classes.
  std::vector<program::Callee> callees(program::Node call, const program::Where& where);

  [[nodiscard]] const program::Files& files() const {
    return files_;
  }
  /// A position in a scope, in the slicer's form.
  static program::Where where_in(const program::File& file, std::size_t scope, program::Node node);

 private:
  using Function = std::pair<const program::File*, std::size_t>;

  const model::JobModel& job_;
  program::Files files_;
  program::Slicer slicer_;
  program::Objects objects_;
  graph::WrappedForwards forwards_;
  bool ddp_;
  std::map<Function, std::vector<Launch>> known_;
  std::map<Function, std::vector<std::string>> always_;
};

}  // namespace ddpdoctor::detectors
