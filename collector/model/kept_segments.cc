// SPDX-License-Identifier: Apache-2.0
#include "collector/model/kept_segments.h"

#include <algorithm>

namespace ddpdoctor::model {

namespace {

/// Pages that became the worker's own were shared before: a copied page is counted in both.
void add_copied(const Fact& earlier, Fact& fact) {
  const auto rose = [&](const char* field) {
    return fact.number(field).value_or(0) - earlier.number(field).value_or(0);
  };
  const double copied = std::min(rose("own_bytes"), -rose("shared_bytes"));
  fact.fields["copied_bytes"] = static_cast<std::int64_t>(std::max(0.0, copied));
  fact.fields["over_seconds"] = rose("time");
}

}  // namespace

void add_growth(const std::vector<Fact>& before, std::vector<Fact>& now) {
  for (Fact& fact : now) {
    const bool segments = fact.kind == "shm-kept";
    if (!segments && fact.kind != "worker-memory") {
      continue;  // there can be hundreds of others, and fields are looked up by name
    }
    for (const Fact& earlier : before) {
      if (earlier.kind != fact.kind || earlier.pid != fact.pid) {
        continue;
      }
      const double seconds = fact.number("time").value_or(0) - earlier.number("time").value_or(0);
      if (seconds > 0 && segments && earlier.text("oldest") == fact.text("oldest")) {
        fact.fields["grew"] = static_cast<std::int64_t>(fact.number("count").value_or(0) -
                                                        earlier.number("count").value_or(0));
        fact.fields["over_seconds"] = seconds;
      }
      if (seconds > 0 && !segments) {
        add_copied(earlier, fact);
      }
    }
  }
}

}  // namespace ddpdoctor::model
