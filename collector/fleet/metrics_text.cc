// SPDX-License-Identifier: Apache-2.0
// Sources: prometheus.io/docs/instrumenting/exposition_formats; opentelemetry-proto, metrics.proto,
// and its JSON encoding (64-bit numbers are texts, enumerators are numbers).
#include "collector/fleet/metrics_text.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::fleet {
namespace {

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

/// Text between quotes; both formats reserve the same two of the printable characters.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char letter : base::printable(text)) {
    out += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  return out + "\"";
}

/// The start time is left out: ranks do not send when they began to count.
void append_point(const Sample& sample, std::string_view time, std::string& out) {
  out += "{\"attributes\":[";
  for (const auto& [key, value] : sample.labels) {
    out += fmt::format("{}{{\"key\":{},\"value\":{{\"stringValue\":{}}}}}",
                       out.ends_with('[') ? "" : ",", in_quotes(key), in_quotes(value));
  }
  out += fmt::format("],\"timeUnixNano\":\"{}\",\"asDouble\":{}}}", time, sample.value);
}

void append_metric(const Metric& metric, std::string_view time, std::string& out) {
  out +=
      fmt::format("{{\"name\":{},\"description\":{},\"{}\":{{\"dataPoints\":[",
                  in_quotes(metric.name), in_quotes(metric.help), metric.counter ? "sum" : "gauge");
  for (const Sample& sample : metric.samples) {
    out += &sample == &metric.samples.front() ? "" : ",";
    append_point(sample, time, out);
  }
  out += "]";
  if (metric.counter) {
    out += fmt::format(",\"aggregationTemporality\":{},\"isMonotonic\":true", kCumulative);
  }
  out += "}}";
}

}  // namespace

std::string prometheus_text(const std::vector<Metric>& metrics) {
  std::string out;
  for (const Metric& metric : metrics) {
    out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help,
                       metric.counter ? "counter" : "gauge");
    for (const Sample& sample : metric.samples) {
      out += metric.name;
      out += '{';
      for (const auto& [key, value] : sample.labels) {
        out += out.ends_with('{') ? "" : ",";
        out += fmt::format("{}={}", key, in_quotes(value));
      }
      out += fmt::format("}} {}\n", sample.value);
    }
  }
  return out;
}

std::string otlp_json(const std::vector<Metric>& metrics, double time, std::string_view version) {
  constexpr double kNanoseconds = 1e9;
  const std::string when = std::to_string(static_cast<std::int64_t>(time * kNanoseconds));
  std::string out = fmt::format(
      "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\","
      "\"value\":{{\"stringValue\":\"ddpdoctor\"}}}}]}},\"scopeMetrics\":[{{\"scope\":{{\"name\":"
      "\"ddpdoctor\",\"version\":{}}},\"metrics\":[",
      in_quotes(version));
  for (const Metric& metric : metrics) {
    if (!metric.samples.empty()) {  // a metric without points is invalid
      out += out.ends_with('[') ? "" : ",";
      append_metric(metric, when, out);
    }
  }
  return out + "]}]}]}";
}

}  // namespace ddpdoctor::fleet
