// SPDX-License-Identifier: Apache-2.0
// Interface to the collector of the whole job, of which this node runs a part: supervise() queries
// it at each check. No function of it blocks.
#pragma once

namespace ddpdoctor::monitor {

class Company {
 public:
  Company() = default;
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  Company(Company&&) = delete;
  Company& operator=(Company&&) = delete;
  virtual ~Company() = default;

  /// A collector diagnoses the job of all nodes: this node must not report its partial view.
  [[nodiscard]] virtual bool leads() const = 0;
  /// No collector runs yet, but one is about to start: reports can wait some seconds.
  [[nodiscard]] virtual bool awaited() const = 0;
  /// The collector wants a snapshot of this node now; true once per request.
  virtual bool wants_look() = 0;
  /// The collector found a hang: if --on-hang kill is set, the job is ended.
  [[nodiscard]] virtual bool found_hang() const = 0;
  /// This node can prove a problem.
  virtual void alarm() = 0;
};

}  // namespace ddpdoctor::monitor
