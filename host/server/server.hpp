#pragma once
// One running server: every layer put together, started and stopped in the right order.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "config/config.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hearth::server {

// Promises   start() returns when clients can connect, and leaves nothing behind when it fails: no
//            thread, no lock, no port. stop() returns when everything is closed.
// Threads    start(), stop() and destruction on one thread, none of the server's own; the rest from
//            any.
// Lifetime   stop() comes before destruction (asserted). The logger outlives it.
// Failure    start(): a sentence for the operator that says what to do. Libraries that are refused
//            are no failure: each is logged with its file, the rule it breaks and what to do, and
//            the others are served. Neither is a full disk, where there are data to be read: each
//            thing that there is no room for is logged (server.disk_full).
class Server {
 public:
  static Result<std::unique_ptr<Server>> start(config::Config config, Logger& logger);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:8787", with the real port when the configuration said 0; with TLS
  // "https://127.0.0.1:8787".
  [[nodiscard]] std::string address() const;

  // The URL segments of the classes that are served, sorted.
  [[nodiscard]] std::vector<std::string> classes() const;

  // Writes what there was no room for when the server started: its record for commands, and the
  // like. True: nothing is missing.
  bool catch_up();

  // Looks at the plugin directories and the class files now, and reads the certificate again: what
  // has changed is replaced, while clients stay. What comes of it is in the log.
  void reload();

  // Takes no new work, lets running work finish within limits.shutdown_grace, closes clients (1001)
  // and databases.
  void stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace hearth::server
