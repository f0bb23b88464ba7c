// SPDX-License-Identifier: Apache-2.0
#include "collector/model/kept_segments.h"

namespace ddpdoctor::model {

void add_growth(const std::vector<Fact>& before, std::vector<Fact>& now) {
  for (Fact& fact : now) {
    for (const Fact& earlier : before) {
      const bool same = fact.kind == "shm-kept" && earlier.kind == "shm-kept" &&
                        earlier.pid == fact.pid && earlier.text("oldest") == fact.text("oldest");
      const double seconds = fact.number("time").value_or(0) - earlier.number("time").value_or(0);
      if (same && seconds > 0) {
        fact.fields["grew"] = static_cast<std::int64_t>(fact.number("count").value_or(0) -
                                                        earlier.number("count").value_or(0));
        fact.fields["over_seconds"] = seconds;
      }
    }
  }
}

}  // namespace ddpdoctor::model
