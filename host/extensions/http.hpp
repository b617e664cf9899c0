#pragma once
// hearth.http/1: the host's side, over CallPort::request(). It has no data of an agent.

#include <hearth/ext/http.h>

namespace hearth::extensions {

[[nodiscard]] const hearth_http_v1& http_extension() noexcept;

}  // namespace hearth::extensions
