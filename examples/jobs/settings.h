// The settings `jobs.*` come from the YAML folder.
#pragma once

#include <memory>
#include <string>

#include "dead_sweep.h"
#include "jobs.h"
#include "leadership.h"

namespace jobs {

/// Returns the present values. Thread safety: any thread.
Options readOptions();
std::string deliverUrl();   ///< "": jobs are logged
std::string replicaName();  ///< host:process, unless it was set
std::string storeName();    ///< memory, redis or postgres

DeadSweep::Options readSweepOptions();

/// Makes what is needed to lead, with `about` as what the others see of this replica. Returns null if no etcd was set.
std::unique_ptr<Leadership> makeLeadership(std::function<nlohmann::json()> about);

/// Makes the store that was chosen. It connects when it is first used.
std::unique_ptr<Store> makeStore();

}  // namespace jobs
