// Waits for all of many futures or fibers, or for any of them.
//
//   std::vector<sylar::Future<Page>> pages = ...;
//   if (const auto first = sylar::whenAny(pages, sylar::Deadline::after(2s))) show(pages[*first].get());
//
// sylar/sync/select.h waits for a few things of different kinds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sylar/fiber.h"
#include "sylar/sync/future.h"

namespace sylar {

namespace detail {
std::optional<size_t> whenAny(std::span<Event* const> events, Deadline deadline);
std::optional<size_t> whenAny(std::span<const Fiber::ptr> fibers, Deadline deadline);
}  // namespace detail

/// Waits until one of `futures` is ready, and returns its index, the lowest if there are several. Empty ones, such as get() leaves,
/// are passed over. Returns nothing if there are no others, or if `deadline` passed, or the fiber was cancelled before. Throws
/// std::bad_alloc. May suspend: yes. A plain thread blocks. Source: Tokio, select_all.
template <class T>
std::optional<size_t> whenAny(const std::vector<Future<T>>& futures, Deadline deadline = Deadline::never()) {
  std::vector<Event*> events;
  events.reserve(futures.size());
  for (const Future<T>& future : futures) events.push_back(future.valid() ? &detail::eventOf(future) : nullptr);
  return detail::whenAny(events, deadline);
}
/// The same for fibers, of which null ones are passed over: until one has ended, or will not end any more.
inline std::optional<size_t> whenAny(const std::vector<Fiber::ptr>& fibers, Deadline deadline = Deadline::never()) {
  return detail::whenAny(std::span(fibers), deadline);
}

/// Waits until all of `futures` are ready, but for the empty ones. Returns false if `deadline` passed or the fiber was cancelled
/// before. Throws std::bad_alloc. May suspend: yes. A plain thread blocks.
template <class T>
bool whenAll(const std::vector<Future<T>>& futures, Deadline deadline = Deadline::never()) {
  for (const Future<T>& future : futures) {
    if (future.valid() && !future.wait(deadline)) return false;
  }
  return true;
}
/// The same for fibers, but for null ones: until all have ended, or will not end any more. Fiber::join() then gives the exception
/// of each.
bool whenAll(const std::vector<Fiber::ptr>& fibers, Deadline deadline = Deadline::never());

}  // namespace sylar
