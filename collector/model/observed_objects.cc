// SPDX-License-Identifier: Apache-2.0
#include "collector/model/observed_objects.h"

#include "collector/model/questions.h"

namespace ddpdoctor::model {

std::vector<program::SeenObject> seen_objects(const JobModel& job, pid_t tid) {
  std::vector<program::SeenObject> out;
  for (const Fact* fact : facts(job, kObjectFact)) {
    if (fact->number("tid") == tid) {
      out.push_back({.file = fact->text("file").value_or(""),
                     .line = static_cast<int>(fact->number("line").value_or(0)),
                     .expression = fact->text("expression").value_or(""),
                     .qualified = fact->text("class").value_or(""),
                     .number = static_cast<int>(fact->number("object").value_or(0))});
    }
  }
  return out;
}

}  // namespace ddpdoctor::model
