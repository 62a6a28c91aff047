// Internal. What a Router, its groups and its routes have in common.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "sylar/base/internal.h"
#include "sylar/base/os_mutex.h"
#include "sylar/web/pattern_table.h"

namespace sylar::http::detail {

/// Thread safety: all calls from any thread.
class RouterCore {
 public:
  using Edit = std::function<void(PatternTable&)>;

  /// `change` publishes what an edit makes of a copy of the present table, or throws and has changed nothing.
  explicit RouterCore(std::function<void(const Edit&)> change) : m_change(std::move(change)) {}

  void change(const Edit& edit) { m_change(edit); }

  /// A place for an object that lives as long as the router. It is made before the object is published, so keep() cannot fail.
  using Kept = std::list<std::shared_ptr<const void>>;
  void keep(Kept&& one) {
    const Lock lock(m_mutex);
    m_kept.splice(m_kept.end(), one);
  }

 private:
  const std::function<void(const Edit&)> m_change;
  OsMutex m_mutex;
  Kept m_kept SYLAR_GUARDED_BY(m_mutex);
};

}  // namespace sylar::http::detail
