// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/prepared_text.h"

#include <utility>

#include "collector/imports/logs/actors.h"
#include "collector/imports/logs/as_pasted.h"
#include "collector/imports/logs/json_log.h"
#include "collector/imports/logs/line_numbers.h"
#include "collector/imports/logs/odd_bytes.h"
#include "collector/imports/logs/plain_text.h"
#include "collector/imports/logs/tee_labels.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/traceback_ranks.h"
#include "collector/imports/stack_dumps/margins.h"

namespace ddpdoctor::imports {

PreparedText::PreparedText(std::string_view bytes) : text_(without_padding(bytes)) {
  for (auto* const step : {from_utf16, without_odd_bytes, json_log_text, as_written,
                           without_colours, without_line_numbers, without_margins}) {
    take(step(text_));
  }
  tracebacks_ = with_plain_tracebacks(text_);
  text_ = tracebacks_ ? std::string_view(tracebacks_->text) : text_;
  take(with_tee_as_ranks(text_));
  labels_ = with_ranks_named(text_);
  text_ = labels_.text.empty() ? text_ : std::string_view(labels_.text);
  actors_ = with_actors_named(text_);
  text_ = actors_.text.empty() ? text_ : std::string_view(actors_.text);
  named_ = text_;
  take(with_ranks_of_tracebacks(text_));
  take(plain_text(text_));
}

void PreparedText::take(std::optional<std::string> changed) {
  if (changed) {
    text_ = steps_.emplace_back(std::move(*changed));
  }
}

}  // namespace ddpdoctor::imports
