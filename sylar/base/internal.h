// Internal. Lets sources and tests in namespaces sylar and sylar::http name internals, which stand in their namespaces `detail`,
// without `detail::`. Every internal header of these namespaces includes it.
#pragma once

namespace sylar {
namespace detail {}
using namespace detail;
namespace http {
namespace detail {}
using namespace detail;
}  // namespace http
}  // namespace sylar
