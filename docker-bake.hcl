# docker buildx bake: the stages as targets. Exactly one of the two tilelang variables:
#
#   TILELANG_GIT_SHA=65dbc9837beedf6882a40a08e18ea571d92fd6a5 docker buildx bake
#   TILELANG_VERSION=0.1.9 docker buildx bake final
#
# The tag is the commit's short SHA or the release; SUFFIX=-2 for a rebuild of the same commit.

variable "REGISTRY" { default = "ghcr.io/tile-ai" }
variable "TILELANG_GIT_SHA" { default = "" }
variable "TILELANG_VERSION" { default = "" }
variable "SUFFIX" { default = "" }
variable "MAX_JOBS" { default = "64" }
variable "NVCC_THREADS" { default = "4" }
variable "RUNNER_VERSION" { default = "2.334.0" }
variable "RUNNER_SHA256" { default = "" }
variable "INIT_COMMIT" { default = "unknown" }
variable "IMAGE_REVISION" { default = "unknown" }

function "source_tag" {
  params = [sha, version]
  result = notequal(sha, "") ? substr(sha, 0, 7) : notequal(version, "") ? version : "no-tilelang-source"
}

group "default" { targets = ["final"] }

target "common" {
  dockerfile = "Dockerfile"
  context    = "."
  args = {
    MAX_JOBS     = MAX_JOBS
    NVCC_THREADS = NVCC_THREADS
    INIT_COMMIT  = INIT_COMMIT
  }
}

target "init" {
  inherits = ["common"]
  target   = "init"
  tags     = ["${REGISTRY}/init:${INIT_COMMIT}"]
}

target "runtime" {
  inherits = ["common"]
  target   = "runtime"
}

target "post-fa3" {
  inherits = ["common"]
  target   = "post-fa3"
}

target "fa2" {
  inherits = ["common"]
  target   = "fa2"
}

target "fullstack" {
  inherits = ["common"]
  target   = "fullstack"
}

target "tilelang" {
  inherits = ["common"]
  target   = "tilelang"
  args = {
    TILELANG_GIT_SHA = TILELANG_GIT_SHA
    TILELANG_VERSION = TILELANG_VERSION
  }
}

target "final" {
  inherits = ["tilelang"]
  target   = "final"
  tags     = ["${REGISTRY}/tileops-runner:${source_tag(TILELANG_GIT_SHA, TILELANG_VERSION)}${SUFFIX}"]
  args = {
    RUNNER_VERSION = RUNNER_VERSION
    RUNNER_SHA256  = RUNNER_SHA256
    IMAGE_REVISION = IMAGE_REVISION
  }
}
