#include "sylar/app/worker_groups.h"

#include <cstdint>
#include <utility>

#include "sylar/app_settings.h"
#include "sylar/base/log.h"
#include "sylar/base/processors.h"

namespace sylar::detail {

void WorkerGroups::make() {
  WorkerSettings settings = workerSettings().getValue();
  if (settings.empty()) settings["io"].thread_num = availableProcessors();
  for (const auto& [name, setting] : settings) {
    auto group = std::make_unique<Group>();
    group->name = name;
    for (uint32_t i = 0; i < setting.worker_num; ++i) {
      group->managers.push_back(std::make_unique<IOManager>(SchedulerOptions{.threads = setting.thread_num,
                                                                             .use_caller = false,
                                                                             .name = name,
                                                                             .max_wait = maxWaitSetting(),
                                                                             .timer_slack = timerSlackSetting(),
                                                                             .spin = spinSetting(),
                                                                             .trim_after = trimAfterSetting(),
                                                                             .identity = identitySetting()},
                                                            timerQueueSetting()));
      if (watchdogSetting().count() > 0) {
        group->watchdogs.push_back(std::make_unique<Watchdog>(*group->managers.back(), watchdogSetting()));
      }
    }
    m_groups.push_back(std::move(group));
  }
}

IOManager* WorkerGroups::get(const std::string& name) const {
  for (const auto& group : m_groups) {
    if (name.empty() || name == group->name) return group->managers[group->next++ % group->managers.size()].get();
  }
  return nullptr;
}

bool WorkerGroups::stop(Deadline deadline) {
  bool clean = true;
  for (const auto& group : m_groups) {
    for (const auto& manager : group->managers) {
      const StopResult result = manager->stop(deadline);
      for (const FiberInfo& left : result.abandoned)
        log::error("worker {}: fiber {} '{}' does not end: {}", group->name, left.id, left.name, left.waits_for);
      clean = clean && result.clean;
    }
  }
  return clean;
}

}  // namespace sylar::detail
