// SPDX-License-Identifier: Apache-2.0
// Metrics as the texts that others read: Prometheus's page and OpenTelemetry's message (OTLP).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/fleet/metrics.h"

namespace ddpdoctor::fleet {

/// Prometheus's text format 0.0.4.
std::string prometheus_text(const std::vector<Metric>& metrics);

/// The body of a POST to /v1/metrics: an ExportMetricsServiceRequest in OTLP's JSON encoding.
/// `time`: seconds since the epoch.
std::string otlp_json(const std::vector<Metric>& metrics, double time, std::string_view version);

}  // namespace ddpdoctor::fleet
