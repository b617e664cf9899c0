#pragma once
// A fixture with one agent of this class on the mock host.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

template <class Class>
class OneAgent : public ::testing::Test {
 protected:
  hearth::testing::Host host_;
  hearth::testing::AgentHandle agent_ = host_.create<Class>("a");
};
