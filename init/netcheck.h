/*
 * The self-test's look at the network: probes/ may not know net/, so it is handed over as a
 * function.
 */
#ifndef INIT_NETCHECK_H
#define INIT_NETCHECK_H

#include "probes/probes.h"

/* One request to the API host over a fresh connection, without a credential: any answer over
 * verified TLS passes. Blocks until the deadline at most. */
probe_net_fn netcheck_run;

#endif
