#include "support/provider.hpp"

#include "support/built.hpp"

#include <stdexcept>

namespace hearth::testing {
namespace {

constexpr const char* kNames =
    "subjectAltName=DNS:provider.test,DNS:other.test,DNS:localhost,IP:127.0.0.1";

// The number after `"name":` in a line of JSON that provider.mjs has written.
std::uint16_t port_in(const std::string& line, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const std::size_t place = line.find(key);
  if (place == std::string::npos) throw std::runtime_error("the provider names no port: " + line);
  return static_cast<std::uint16_t>(std::stoi(line.substr(place + key.size())));
}

std::string url_of(std::string_view scheme, std::uint16_t port, std::string_view path) {
  return std::string(scheme) + "://provider.test:" + std::to_string(port) + std::string(path);
}

}  // namespace

Provider::Provider() {
  const std::string key = directory_.path() / "key.pem";
  ServerProcess openssl({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                         "/CN=provider.test", "-addext", kNames, "-keyout", key, "-out",
                         certificate()});
  if (openssl.wait() != Ending{.status = 0, .signal = 0})
    throw std::runtime_error("openssl made no certificate: " + openssl.log());
  const std::string script = built::sources() / "tests/support/provider.mjs";
  process_ =
      std::make_unique<ServerProcess>(std::vector<std::string>{"node", script, certificate(), key});
  const std::string ports = process_->wait_for_line();
  http_ = port_in(ports, "http");
  https_ = port_in(ports, "https");
  silent_ = port_in(ports, "silent");
  proxy_ = port_in(ports, "proxy");
}

std::string Provider::http_url(std::string_view path) const {
  return url_of("http", http_, path);
}

std::string Provider::https_url(std::string_view path) const {
  return url_of("https", https_, path);
}

std::filesystem::path Provider::certificate() const {
  return directory_.path() / "certificate.pem";
}

}  // namespace hearth::testing
