// All of sylar in one include, as programs written for sylar expect it.
#pragma once

#if __cplusplus < 202002L
#error "sylar needs C++20: compile with -std=c++20"
#endif

#include <string.h>
#include <unistd.h>

#include <list>
#include <map>
#include <vector>

#include "sylar/app/application.h"
#include "sylar/base/clock.h"
#include "sylar/base/fs_util.h"
#include "sylar/base/macro.h"
#include "sylar/base/mutex.h"
#include "sylar/base/noncopyable.h"
#include "sylar/base/singleton.h"
#include "sylar/base/string_util.h"
#include "sylar/base/thread.h"
#include "sylar/base/util.h"
#include "sylar/config/config.h"
#include "sylar/config/env.h"
#include "sylar/fiber/fiber.h"
#include "sylar/hook/hook.h"
#include "sylar/http/http.h"
#include "sylar/http/http_server.h"
#include "sylar/io/iomanager.h"
#include "sylar/log/fiber_id.h"
#include "sylar/log/log.h"
#include "sylar/net/tcp_server.h"
#include "sylar/sched/scheduler.h"
#include "sylar/timer/idle_list.h"
#include "sylar/timer/timer.h"
