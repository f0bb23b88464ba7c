// SPDX-License-Identifier: Apache-2.0
// Sends a message to a chat when a job hangs, using curl. The address is a secret: it is read from
// a file and passed to curl on its standard input.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::cli {

/// {"text": "…"}: the format of Slack, Mattermost, Rocket.Chat and Discord (…/slack).
std::string webhook_body(const diagnosis::Diagnosis& diagnosis);

/// Sends it to the address in `file`.
base::Result<void> send_webhook(const std::string& file, const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::cli
