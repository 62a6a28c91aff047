// Internal. What users do not see stands in `detail` of their namespace. Every internal header of such a namespace includes this one,
// so that the sources and tests in the outer namespace name all of it without `detail::`.
#pragma once

namespace sylar {
namespace detail {}
using namespace detail;
namespace http {
namespace detail {}
using namespace detail;
}  // namespace http
}  // namespace sylar
