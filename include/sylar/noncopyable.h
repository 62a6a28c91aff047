// A base class whose derived classes can be neither copied nor moved. Source: sylar.
#pragma once

namespace sylar {

/// A base class whose derived classes can be neither copied nor moved.
class Noncopyable {
 public:
  Noncopyable() = default;
  ~Noncopyable() = default;
  Noncopyable(const Noncopyable&) = delete;
  Noncopyable& operator=(const Noncopyable&) = delete;
};

}  // namespace sylar
