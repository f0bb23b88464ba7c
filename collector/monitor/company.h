// SPDX-License-Identifier: Apache-2.0
// Whoever reads the whole job, of which this node runs a part: asked by supervise() at each look.
// Nothing in it waits.
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

  /// Somebody diagnoses the job of all nodes now: what one node sees alone is not to be said.
  [[nodiscard]] virtual bool leads() const = 0;
  /// Nobody does yet, and somebody is about to: what there is to say can wait some seconds.
  [[nodiscard]] virtual bool awaited() const = 0;
  /// It wants to see this node's part now; true once per wish.
  virtual bool wants_look() = 0;
  /// It found a hang: who was told to end the job on one does so.
  [[nodiscard]] virtual bool found_hang() const = 0;
  /// Something is provable here.
  virtual void alarm() = 0;
};

}  // namespace ddpdoctor::monitor
