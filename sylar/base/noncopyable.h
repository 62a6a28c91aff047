// A base class that takes copying and moving away from those that derive from it. Source: sylar.
#pragma once

namespace sylar {

class Noncopyable {
 public:
  Noncopyable() = default;
  ~Noncopyable() = default;
  Noncopyable(const Noncopyable&) = delete;
  Noncopyable& operator=(const Noncopyable&) = delete;
};

}  // namespace sylar
