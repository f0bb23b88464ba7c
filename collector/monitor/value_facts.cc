// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/value_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "collector/model/observed_objects.h"

namespace ddpdoctor::monitor {

namespace {

bool is_value(const sources::RawFact& fact) {
  return fact.kind == model::kValueFact || fact.kind == model::kLockFact ||
         fact.kind == model::kObjectFact;
}

}  // namespace

stacks::PythonVisitor ValueFacts::visitor() {
  return [this](stacks::PythonVisit& visit) {
    seen_[visit.stacks.pid] = observer_.observe(visit);
    locks_[visit.stacks.pid] = observer_.locks(visit);
    objects_[visit.stacks.pid] = observer_.objects(visit);
  };
}

void ValueFacts::add_to(model::Look& look, const model::Look* before) const {
  look.texts = observer_.texts();
  for (const auto& [pid, values] : seen_) {
    const sources::JobProcess* process = look.tree.find(pid);
    if (process == nullptr || process->role != sources::JobRole::kRank) {
      continue;
    }
    for (const model::SeenValue& seen : values) {
      model::Fact fact = model::fact_of(seen);
      look.facts.push_back({.rank = process->rank,
                            .pid = pid,
                            .kind = std::move(fact.kind),
                            .fields = std::move(fact.fields)});
    }
  }
  for (const auto& [pid, locks] : locks_) {
    const sources::JobProcess* process = look.tree.find(pid);
    for (const values::SeenLock& seen : locks) {
      if (process != nullptr) {
        look.facts.push_back({.rank = process->rank,
                              .pid = pid,
                              .kind = std::string(model::kLockFact),
                              .fields = {{"tid", std::int64_t{seen.tid}},
                                         {"file", seen.file},
                                         {"line", std::int64_t{seen.line}},
                                         {"expression", seen.expression},
                                         {"lock", static_cast<std::int64_t>(seen.lock)}}});
        if (seen.owner) {
          look.facts.back().fields["owner"] = std::int64_t{*seen.owner};
          look.facts.back().fields["count"] = seen.count;
        }
      }
    }
  }
  for (const auto& [pid, objects] : objects_) {
    const sources::JobProcess* process = look.tree.find(pid);
    for (const values::CalledObject& seen : objects) {
      if (process != nullptr) {
        look.facts.push_back({.rank = process->rank,
                              .pid = pid,
                              .kind = std::string(model::kObjectFact),
                              .fields = {{"tid", std::int64_t{seen.tid}},
                                         {"file", seen.file},
                                         {"line", std::int64_t{seen.line}},
                                         {"expression", seen.expression},
                                         {"class", seen.qualified},
                                         {"object", static_cast<std::int64_t>(seen.number)}}});
      }
    }
  }
  if (before == nullptr) {
    return;
  }
  std::copy_if(before->facts.begin(), before->facts.end(), std::back_inserter(look.facts),
               [&](const sources::RawFact& fact) {
                 return is_value(fact) && fact.pid && !seen_.contains(*fact.pid) &&
                        look.tree.find(*fact.pid) != nullptr;
               });
}

}  // namespace ddpdoctor::monitor
