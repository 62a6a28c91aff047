// All of sylar in one include, as programs written for sylar expect it, with yaml-cpp and, where it is installed, Boost's
// lexical_cast, which they use through it. New programs include the headers that they need, none of which brings either.
#pragma once

#if __cplusplus < 202002L
#error "sylar needs C++20: compile with -std=c++20"
#endif

#include <string.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <list>
#include <map>
#include <vector>

#if __has_include(<boost/lexical_cast.hpp>)
#include <boost/lexical_cast.hpp>
#endif

#include "sylar/application.h"
#include "sylar/cancel.h"
#include "sylar/clock.h"
#include "sylar/compat/atomic.h"
#include "sylar/compat/fiber_id.h"
#include "sylar/compat/fs_util.h"
#include "sylar/compat/params.h"
#include "sylar/compat/shared_array.h"
#include "sylar/compat/speed_limit.h"
#include "sylar/compat/string_util.h"
#include "sylar/config.h"
#include "sylar/env.h"
#include "sylar/fiber.h"
#include "sylar/fiber_local.h"
#include "sylar/hook.h"
#include "sylar/http/http.h"
#include "sylar/http/http_server.h"
#include "sylar/idle_list.h"
#include "sylar/iomanager.h"
#include "sylar/log.h"
#include "sylar/macro.h"
#include "sylar/mutex.h"
#include "sylar/noncopyable.h"
#include "sylar/peer_scope.h"
#include "sylar/scheduler.h"
#include "sylar/select.h"
#include "sylar/signal_wait.h"
#include "sylar/singleton.h"
#include "sylar/sync/blocking.h"
#include "sylar/sync/channel.h"
#include "sylar/sync/condition_variable.h"
#include "sylar/sync/event.h"
#include "sylar/sync/future.h"
#include "sylar/sync/latch.h"
#include "sylar/sync/once.h"
#include "sylar/sync/task_group.h"
#include "sylar/sync/wait_group.h"
#include "sylar/sync/when.h"
#include "sylar/sync/worker_group.h"
#include "sylar/tcp_server.h"
#include "sylar/thread.h"
#include "sylar/timer.h"
#include "sylar/util.h"
#include "sylar/version.h"
