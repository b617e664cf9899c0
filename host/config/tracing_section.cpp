#include "config/tracing_section.hpp"

#include "base/escape.hpp"
#include "config/edge_section.hpp"
#include "config/egress_section.hpp"

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {
namespace {

using Paths = std::vector<std::filesystem::path>;

bool is_service_name(std::string_view text) {
  return !text.empty() && text.size() <= 128;
}

void read_ratio(const Reading& in, double& out) {
  constexpr std::string_view kForm = "a number from 0 to 1";
  const YamlNode* const node = in.reader.find_scalar(in.key, kForm);
  if (node == nullptr) return;
  double ratio = -1;
  const char* const end = node->text.data() + node->text.size();
  const auto read = std::from_chars(node->text.data(), end, ratio);
  const bool is_number = read.ec == std::errc() && read.ptr == end && !node->is_quoted;
  if (!is_number || !(ratio >= 0 && ratio <= 1)) {
    return in.reader.complain(in.key, node->at,
                              "expected " + std::string(kForm) + ", found " + describe(*node));
  }
  out = ratio;
}

}  // namespace

Settings<ServerConfig> tracing_section() {
  return {
      text_setting("tracing.endpoint", at(&ServerConfig::tracing, &TracingConfig::endpoint), "URL",
                   "an https URL, or an http one of this machine", is_own_url,
                   "where the server sends [traces](../packaging/README.md#traces), with OTLP/HTTP "
                   "in JSON: `http://127.0.0.1:4318/v1/traces`. Empty: nowhere"),
      row(
          "tracing.headers", "list of paths", "",
          at(&ServerConfig::tracing, &TracingConfig::headers),
          [](const Reading& in, Paths& out) { in.reader.read_paths(in.key, out, in.directory); },
          [](const Paths& paths) {
            Json list = Json::array();
            for (const auto& each : paths) list.push_back(each.string());
            return list;
          },
          "files with a header for the collector each, in the form of [credentials](#credentials): "
          "one line, `Name: value` or a token. The server reads them again for each request"),
      row(
          "tracing.sample", "number", "0, 1", at(&ServerConfig::tracing, &TracingConfig::sample),
          read_ratio, [](double ratio) { return Json(ratio); },
          "the share of traces that are sent. A client that sends `traceparent` decides itself, "
          "with its flag `sampled`"),
      text_setting("tracing.service_name", at(&ServerConfig::tracing, &TracingConfig::service_name),
                   "text", "a name of up to 128 bytes", is_service_name,
                   "the server's `service.name` in traces"),
  };
}

void check_tracing(const ServerConfig& server, Report& report) {
  for (const auto& file : server.tracing.headers) {
    const std::string mistake = credential_mistake(file);
    if (!mistake.empty())
      report.add(server.sources.at("tracing.headers").at, "tracing.headers: " + mistake);
  }
}

}  // namespace hearth::config
