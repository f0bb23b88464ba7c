// SPDX-License-Identifier: Apache-2.0
// A message to a chat when a job hangs, by curl. The address is a secret of the chat: it comes from
// a file and is given to curl on its standard input.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::cli {

/// {"text": "…"}: what Slack, Mattermost, Rocket.Chat and Discord (…/slack) take.
std::string webhook_body(const diagnosis::Diagnosis& diagnosis);

/// Sends it to the address in `file`.
base::Result<void> send_webhook(const std::string& file, const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::cli
