/* The registry. --list, --selftest, the gate, the watch and the documentation come from it. */
#include "base/exitcode.h"
#include "probes/internal.h"

#include <stddef.h>

/* Checks that run within 5 s together have 4 s each: what they start is then killed and named. */
#define FAST 4000

const struct group probe_groups[GROUP__MAX] = {
	[G_NODES] = {FAST, false, WATCH_CHEAP, group_nodes},
	[G_DRIVER] = {FAST, false, WATCH_CHEAP, group_driver},
	[G_COUNT] = {FAST, false, WATCH_CHEAP, group_count},
	/* before what loads the card: it must not see our own work as an earlier job's */
	[G_SMI] = {FAST, true, WATCH_HEAVY, group_smi},
	[G_CACHE] = {FAST, false, WATCH_NO, group_cache},
	[G_RUNNER] = {FAST, false, WATCH_NO, group_runner},
	[G_AGENT] = {FAST, false, WATCH_NO, group_agent},
	[G_SYSTEM] = {FAST, false, WATCH_NO, group_system},
	[G_NET] = {FAST, false, WATCH_NO, group_net},
	[G_BUILD] = {110000, false, WATCH_NO, group_build},
	[G_IMAGE] = {55000, false, WATCH_NO, group_image},
	[G_CUDA] = {25000, true, WATCH_NO, group_cuda},
	[G_TORCH] = {50000, true, WATCH_NO, group_torch},
};

#define HOST_LOGS "look at the host's kernel log for Xid lines"

#define GPU(name, tier_, group_, action_, about_, remedy_)                                         \
	{                                                                                          \
		.id = (name), .tier = (tier_), .group = (group_), .gpu = true, .code = XC_GPU,     \
		.action = (action_), .about = (about_), .remedy = (remedy_)                        \
	}
#define ANY(name, tier_, group_, code_, about_, remedy_)                                           \
	{                                                                                          \
		.id = (name), .tier = (tier_), .group = (group_), .code = (code_),                 \
		.about = (about_), .remedy = (remedy_)                                             \
	}
#define NET(name, code_, about_, remedy_)                                                          \
	{                                                                                          \
		.id = (name), .tier = TIER_FAST, .group = G_NET, .net = true, .code = (code_),     \
		.about = (about_), .remedy = (remedy_)                                             \
	}

const struct check probe_checks[CHECK__MAX] = {
	[C_GPU_NODES] =
		GPU("gpu.nodes", TIER_FAST, G_NODES, ACT_RESTART_CONTAINER,
		    "the device nodes are there and can be opened",
		    "start the container with --gpus all (or the device plugin's resource)"),
	[C_GPU_DRIVER] = GPU("gpu.driver", TIER_FAST, G_DRIVER, ACT_RESTART_CONTAINER,
			     "the kernel module and the mounted driver libraries are one version",
			     "recreate the container, so that it gets the host's new libraries"),
	[C_GPU_COUNT] = GPU("gpu.count", TIER_FAST, G_COUNT, ACT_REBOOT,
			    "as many cards as expected: nodes, /proc, PCI",
			    "a card is gone without a message: drain the node and reboot it; "
			    "replace the card if it stays away"),
	[C_GPU_SMI] = GPU("gpu.smi", TIER_FAST, G_SMI, ACT_REBOOT,
			  "the vendor's tool answers and reads every card",
			  "drain the node and reboot it; " HOST_LOGS),
	[C_GPU_RECOVERY] = GPU("gpu.recovery", TIER_FAST, G_SMI, ACT_RESET_GPU,
			       "the driver asks for no recovery action",
			       "drain the node and do what the driver asks for"),
	[C_GPU_ECC] = GPU("gpu.ecc", TIER_FAST, G_SMI, ACT_RESET_GPU,
			  "no uncorrected memory error since the last reset",
			  "drain the node and reset the GPU (nvidia-smi -r); replace it if errors "
			  "come back"),
	[C_GPU_REMAP] =
		GPU("gpu.remap", TIER_FAST, G_SMI, ACT_RESET_GPU,
		    "no row remapping or page retirement is pending or failed",
		    "drain the node and reset the GPU; a failed remapping needs another card"),
	[C_GPU_FABRIC] = GPU("gpu.fabric", TIER_FAST, G_SMI, ACT_RESTART_CONTAINER,
			     "the NVLink fabric is registered, where there is one",
			     "start nvidia-fabricmanager on the host and wait for it "
			     "(INIT_GPU_WAIT); without it CUDA fails with error 802"),
	[C_GPU_THROTTLE] = GPU("gpu.throttle", TIER_FAST, G_SMI, ACT_NONE,
			       "the hardware does not slow the clocks",
			       "look at cooling and power of the node; jobs run, but slowly"),
	[C_GPU_MIG] = GPU("gpu.mig", TIER_FAST, G_SMI, ACT_NONE,
			  "MIG mode, and an instance where it is on",
			  "create a MIG instance on the host, or turn MIG off"),
	[C_GPU_MEMORY] = GPU("gpu.memory", TIER_FAST, G_SMI, ACT_RESET_GPU,
			     "the memory of an idle card is free",
			     "end what holds the card (gpu.processes names it) or reset the GPU; a "
			     "card that is shared on purpose: INIT_GPU_MAX_USED=0"),
	[C_GPU_PROCESSES] = GPU("gpu.processes", TIER_FAST, G_SMI, ACT_RESTART_CONTAINER,
				"no process uses the card before the job does",
				"end what an earlier job left behind"),
	[C_GPU_CUDA] = GPU("gpu.cuda", TIER_FAST, G_SMI, ACT_NONE,
			   "the driver is new enough for the image's CUDA",
			   "a newer driver on the host, or an image for an older CUDA"),

	[C_CACHE_WRITE] = ANY("cache.write", TIER_FAST, G_CACHE, XC_FILES,
			      "the job's user can write into each cache directory",
			      "on the host: chgrp to the runner's group, chmod g+rwXs"),
	[C_CACHE_SPACE] = ANY("cache.space", TIER_FAST, G_CACHE, XC_FILES,
			      "free space and inodes of the cache directories",
			      "free some, or lower INIT_CACHE_MIN_FREE"),
	[C_CACHE_KIND] = ANY("cache.kind", TIER_FAST, G_CACHE, XC_FILES,
			     "the caches are on a file system that is safe for compiler caches",
			     "put the caches on a local disk: network file systems race between "
			     "nodes, a container's own layer goes with the container"),
	[C_RUNNER_ROOT] = ANY("runner.root", TIER_FAST, G_RUNNER, XC_FILES,
			      "runner root and work folder can be written, and programs run there",
			      "mount it writable and without noexec, owned by the runner's user"),
	[C_RUNNER_AGENT] = ANY("runner.agent", TIER_FAST, G_AGENT, XC_FILES,
			       "Runner.Listener starts and says its version",
			       "unpack the runner again, or set RUNNER_ROOT"),
	[C_RUNNER_ICU] = ANY("runner.icu", TIER_FAST, G_RUNNER, XC_STACK,
			     "the libraries that the agent's .NET needs are there",
			     "run the runner's bin/installdependencies.sh in the image, or set "
			     "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"),
	[C_SYS_SHM] = ANY("sys.shm", TIER_FAST, G_SYSTEM, XC_CONFIG, "/dev/shm is large enough",
			  "start the container with --shm-size=8g or --ipc=host: data loaders need "
			  "more than the default of 64 MiB"),
	[C_SYS_LIMITS] = ANY("sys.limits", TIER_FAST, G_SYSTEM, XC_CONFIG,
			     "limits of files, processes, locked memory, and the cgroup's",
			     "raise the limit in the container's options (--ulimit, --pids-limit, "
			     "--memory)"),
	[C_SYS_CLOCK] = ANY("sys.clock", TIER_FAST, G_SYSTEM, XC_CLOCK,
			    "the clock is not before the date of this build",
			    "set the host's clock (chrony, systemd-timesyncd)"),
	[C_NET_CA] = NET("net.ca", XC_UNAVAILABLE, "a bundle of CA certificates is there",
			 "install ca-certificates, or set SSL_CERT_FILE"),
	[C_NET_API] = NET("net.api", XC_UNAVAILABLE, "name, connection and TLS to the API host",
			  "look at DNS, egress rules and https_proxy"),
	[C_NET_CLOCK] = ANY("net.clock", TIER_FAST, G_NET, XC_CLOCK,
			    "the clock agrees with the Date of a verified answer within 5 minutes",
			    "set the host's clock (chrony, systemd-timesyncd)"),

	[C_STACK_TILELANG] = ANY("stack.tilelang", TIER_BUILD, G_BUILD, XC_STACK,
				 "tilelang imports (an abort is a result)",
				 "rebuild the image: the wheel and apache-tvm-ffi must match"),
	[C_STACK_TVM_FFI] = ANY("stack.tvm_ffi", TIER_BUILD, G_BUILD, XC_STACK,
				"apache-tvm-ffi is inside the range of tilelang's own metadata",
				"pin apache-tvm-ffi inside the range"),
	[C_STACK_CUDA] = ANY("stack.cuda", TIER_BUILD, G_BUILD, XC_STACK,
			     "torch, torchvision and torchaudio are the expected CUDA build",
			     "install them again from the expected index; an image for another "
			     "CUDA: INIT_EXPECT_CUDA, INIT_EXPECT_SUFFIX"),
	[C_STACK_PINS] = ANY("stack.pins", TIER_BUILD, G_BUILD, XC_STACK,
			     "every pin of constraints.txt is the installed version",
			     "install with -c constraints.txt, or move the pin"),
	[C_STACK_BASELINES] = ANY("stack.baselines", TIER_BUILD, G_BUILD, XC_STACK,
				  "which best-effort baselines are present",
				  "benchmarks against an absent baseline will be skipped"),

	[C_IMAGE_TORCH] = ANY("image.torch", TIER_DEEP, G_IMAGE, XC_STACK,
			      "torch imports and is the expected CUDA build",
			      "rebuild the image; another CUDA: INIT_EXPECT_CUDA, "
			      "INIT_EXPECT_SUFFIX"),
	[C_IMAGE_TILELANG] = ANY("image.tilelang", TIER_DEEP, G_IMAGE, XC_STACK,
				 "tilelang imports and says its version", "rebuild the image"),
	[C_IMAGE_FLASHINFER] =
		ANY("image.flashinfer", TIER_DEEP, G_IMAGE, XC_STACK,
		    "flashinfer imports, its cubin directory can be written",
		    "rebuild the image; its cubin directories belong to the runner's "
		    "user"),
	[C_IMAGE_MAMBA] = ANY("image.mamba", TIER_DEEP, G_IMAGE, XC_STACK,
			      "mamba_ssm with selective_scan_cuda and mamba_chunk_scan_combined",
			      "rebuild the image with MAMBA_FORCE_BUILD=TRUE"),
	[C_IMAGE_DEEPGEMM] = ANY("image.deep_gemm", TIER_DEEP, G_IMAGE, XC_STACK,
				 "deep_gemm imports and says its version", "rebuild the image"),
	[C_GPU_CONTEXT] = GPU("gpu.context", TIER_DEEP, G_CUDA, ACT_REBOOT,
			      "each card gives a CUDA context and memory",
			      "drain the node and reboot it; " HOST_LOGS),
	[C_GPU_PATTERN] = GPU("gpu.pattern", TIER_DEEP, G_CUDA, ACT_REPLACE,
			      "1 GiB written to each card is read back the same",
			      "drain the node and replace the card"),
	[C_GPU_COPY] = GPU("gpu.copy", TIER_DEEP, G_CUDA, ACT_REPLACE,
			   "copies between host and card reach the floor",
			   "look at the PCIe link (nvidia-smi -q -d PCIE); another floor: "
			   "INIT_FLOOR_COPY_GBS"),
	[C_GPU_CUBLAS] = GPU("gpu.cublas", TIER_DEEP, G_TORCH, ACT_REPLACE,
			     "matmul, bmm and einsum in fp16 are finite and right",
			     "drain the node: wrong numbers mean a bad card or a broken library"),
	[C_GPU_GEMM] =
		GPU("gpu.gemm", TIER_DEEP, G_TORCH, ACT_REPLACE, "matrix products reach the floor",
		    "look at cooling, power and clocks; another floor: "
		    "INIT_FLOOR_GEMM_TFLOPS"),
	[C_GPU_TRITON] = {.id = "gpu.triton",
			  .tier = TIER_DEEP,
			  .group = G_TORCH,
			  .gpu = true,
			  .code = XC_STACK,
			  .about = "a Triton kernel compiles and is right",
			  .remedy = "rebuild the image; a compiler (gcc) must be in it"},
	[C_GPU_TILELANG] = {.id = "gpu.tilelang",
			    .tier = TIER_DEEP,
			    .group = G_TORCH,
			    .gpu = true,
			    .code = XC_STACK,
			    .about = "a tilelang kernel compiles and is right",
			    .remedy = "rebuild the image; nvcc must be in it"},
	[C_GPU_NCCL] = GPU("gpu.nccl", TIER_DEEP, G_TORCH, ACT_REBOOT,
			   "all-reduce over all cards is right, where there are several",
			   "look at NVLink and at /dev/shm (--shm-size)"),
};

const char *verdict_name(enum verdict v)
{
	static const char *const names[V__MAX] = {"pass", "warn", "fail", "skip", "unknown"};

	return v >= 0 && v < V__MAX ? names[v] : "unknown";
}

const char *action_name(enum action a)
{
	static const char *const names[ACT__MAX] = {
		"none", "restart_container", "restart_docker", "reset_gpu", "reboot", "replace"};

	return a >= 0 && a < ACT__MAX ? names[a] : "none";
}

const char *tier_name(enum probe_tier t)
{
	static const char *const names[TIER__MAX] = {"off", "build", "fast", "deep"};

	return t >= 0 && t < TIER__MAX ? names[t] : "off";
}

int tier_budget_ms(enum probe_tier t)
{
	static const int ms[TIER__MAX] = {0, 120000, 5000, 60000};

	return t >= 0 && t < TIER__MAX ? ms[t] : 0;
}
