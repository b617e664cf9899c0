#pragma once
// A kind of operation for a test, with what its author has to write down about it.

#include <hearth/operations.hpp>

constexpr hearth::OperationKind operation_kind(hearth::Effect effect) {
  return {.effect = effect,
          .same = "its arguments",
          .interrupted = "as the class of the effect says",
          .upstream = "it counts",
          .unknown = "the test looks at it"};
}
