// SPDX-License-Identifier: Apache-2.0
// Where metrics are sent by OTLP, and how: the variables that OpenTelemetry defines for its
// exporters. The variables of metrics have priority over those of all signals.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

struct OtlpSettings {
  std::string url;                   // of the messages
  std::vector<std::string> headers;  // "Authorization: Bearer …"; secret
  std::string ca;                    // file; empty = the authorities that the machine knows
  std::string certificate;           // file; empty = none
  std::string key;
  double limit = 10;  // seconds for one message
};

/// The value of an environment variable, or nullptr.
using Variable = std::function<const char*(const char* name)>;

/// `address` is the receiver's base address, such as http://host:4318, or `env`: the address is in
/// OTEL_EXPORTER_OTLP_ENDPOINT.
base::Result<OtlpSettings> otlp_settings(const std::string& address, const Variable& variable);

}  // namespace ddpdoctor::cli
