#pragma once

namespace hearth {

// The base of the classes that others implement. An object is destroyed through its interface, and
// never copied.
class Interface {
 public:
  Interface() = default;
  virtual ~Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
};

}  // namespace hearth
