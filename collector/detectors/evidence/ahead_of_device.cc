// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/ahead_of_device.h"

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

std::string ahead_of_device(const graph::Examination& examination,
                            const graph::Standing& standing) {
  const model::Frame* host =
      standing.thread == nullptr ? nullptr : model::user_frame(*standing.thread);
  if (host == nullptr || !standing.call || !standing.call->sequence || !standing.user.known() ||
      graph::same_line(model::call_site(*host), standing.user)) {
    return {};
  }
  const model::CollectiveCall* newest =
      examination.history.last(standing.call->group, standing.rank);
  std::string text = "; its host is at " + place(model::call_site(*host));
  if (newest != nullptr && newest->sequence > *standing.call->sequence) {
    text += fmt::format(" and has launched up to {} #{}", newest->operation, newest->sequence);
  }
  return text;
}

}  // namespace ddpdoctor::detectors
