#pragma once

// Reads the progress of a run's turns from the snapshots of the actors that they wait for.

#include "launch/node/node.hpp"
#include "messages/run.capnp.h"

namespace kernelmill {

/// From what the POLICY CLIENT or the POLICY POOL answers to STATUS.
void read_policy(progress& into, wire::Snapshot::Reader policy);

/// From what the CLUSTER answers to STATUS.
void read_cluster(progress& into, wire::Snapshot::Reader cluster);

} // namespace kernelmill
